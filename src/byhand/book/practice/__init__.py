"""Practice: quizzes, grading, mistakes, worksheets."""
