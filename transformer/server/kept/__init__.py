"""What the page, classes and programs share: the models, runs and trainings of visits."""
