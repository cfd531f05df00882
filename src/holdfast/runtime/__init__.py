"""Where everything is wired: the Holdfast object, its configuration and the command line."""
