-- Wake workers that wait for these queues.
SELECT timeball.wake(%(queues)s::text[]);
