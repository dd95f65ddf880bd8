"""The shapes of requests and answers, in camelCase."""
