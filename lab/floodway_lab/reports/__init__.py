"""What a comparison of systems is told as: a page of HTML with charts, and tables of Markdown."""
