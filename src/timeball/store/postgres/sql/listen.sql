-- Ask to be woken when jobs are submitted.
LISTEN timeball_wake;
