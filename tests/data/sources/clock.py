from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger


def job(): ...


scheduler = BackgroundScheduler(timezone="Asia/Seoul")
for trigger, name in [
    (CronTrigger(hour=6, minute=0), "prices"),
    (IntervalTrigger(hours=6), "listings"),
    (CronTrigger(day_of_week="mon,thu", hour=9, minute=0), "subscriptions"),
    (CronTrigger(day_of_week="sun", hour=20, minute=0), "weekly"),
]:
    scheduler.add_job(job, trigger, id=name, max_instances=1, replace_existing=True)
scheduler.add_job(job, "interval", minutes=5, id="poll", jitter=10, misfire_grace_time=10)
scheduler.add_job(job, trigger="cron", hour=23, minute=30, id="fetch")
scheduler.add_job(job, "date", id="once")
