"""What the middleware of `holdfast.web` costs a request."""
