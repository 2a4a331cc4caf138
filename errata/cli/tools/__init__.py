"""Commands for people who write pipelines, each imported when it is called: projects, checks, schemas, editors, cases, notebooks."""
