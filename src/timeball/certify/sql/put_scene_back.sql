-- Have all tables hold again what was kept.
SELECT certify_scene.put_back();
