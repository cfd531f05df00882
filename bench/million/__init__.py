"""What questions about jobs cost beside a million others."""
