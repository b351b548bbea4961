"""Small attacks, each on one promise: what a defect that is put in must change what they see."""
