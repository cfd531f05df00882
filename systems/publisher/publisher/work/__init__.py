"""What is done without a person: tasks, schedules, and what happens at the end of a job."""
