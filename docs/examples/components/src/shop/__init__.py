"""A project as `create-dagster` makes it, with the tables of Kafka topics and two assets that read them."""
