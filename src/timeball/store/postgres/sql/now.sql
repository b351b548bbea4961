-- Return the store's clock.
SELECT timeball.now();
