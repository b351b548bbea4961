-- Every row of every table, as JSON.
SELECT lines.name, lines.line FROM certify_scene.lines();
