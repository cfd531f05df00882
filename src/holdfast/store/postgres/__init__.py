"""The store on PostgreSQL, through asyncpg."""
