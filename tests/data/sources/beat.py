from celery import Celery
from celery.schedules import crontab

app = Celery("desk")
app.conf.update(
    timezone="UTC",
    enable_utc=True,
    beat_schedule={
        # every day at 5:00 PM UTC (12:00 PM EST)
        "analyse": {
            "task": "desk.tasks.analyse",
            "schedule": crontab(hour=17, minute=0),
            "options": {"queue": "analysis", "expires": 3600},
        },
        # every Sunday
        "backtest": {
            "task": "desk.tasks.backtest",
            "schedule": crontab(day_of_week=6, hour=9, minute=0),
        },
        # every 4 hours
        "freshness": {
            "task": "desk.sync.freshness",
            "schedule": crontab(hour="*/4"),
            "options": {"queue": "watch", "expires": 1800},
        },
    },
)
