-- Lock a schedule as a ticker does, or fail at once where somebody is at it.
SELECT schedule.id FROM timeball.schedule WHERE schedule.name = %(name)s FOR NO KEY UPDATE NOWAIT;
