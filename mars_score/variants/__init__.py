"""What each formula asks of the models, and the scores and notices that follow."""
