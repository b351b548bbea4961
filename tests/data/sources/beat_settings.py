import datetime as dt

from celery.schedules import crontab

CELERY_TIMEZONE = "Asia/Riyadh"
CELERY_TASK_ANNOTATIONS = {"shop.tracking.process": {"rate_limit": "100/m"}}
CELERY_BEAT_SCHEDULE = {
    "watch": {"task": "bots.watch.run", "schedule": 30.0, "options": {"queue": "high"}},
    "expiring": {"task": "shop.notify.expiring", "schedule": 86400.0},
    "purge": {"task": "shop.tokens.purge", "schedule": 6 * 3600},
    "weekly": {
        "task": "reports.weekly",
        "schedule": crontab(day_of_week="monday", hour=8, minute=0),
    },
    "monthly": {"task": "reports.monthly", "schedule": crontab(day_of_month=1, hour=9, minute=0)},
    "rescore": {
        "task": "gallery.rescore",
        "schedule": crontab(minute="*/10"),
        "kwargs": {"limit": 500},
    },
    "clean": {"task": "queue.clean", "schedule": crontab(hour=2, minute=0), "args": (86400,)},
    "pulse": {"task": "blog.log", "schedule": dt.timedelta(seconds=30), "args": ("Message",)},
}
