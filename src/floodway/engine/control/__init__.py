"""What the driver and the tasks say to each other: messages, and the reports of tasks."""
