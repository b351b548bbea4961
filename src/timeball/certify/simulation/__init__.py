"""Workers, clients, tickers and sweepers over the memory store, under virtual time and one seed."""
