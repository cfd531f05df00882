"""Jobs: tasks, schedules, workers and what happens to a job from enqueue to its end."""
