"""What all peers read and make: types of the CSV sources of examples/ads, and the columns of its table `joined`."""
TYPES = {
    "sessions": {"session": "int64", "user": "int64", "device": "text", "started": "timestamp"},
    "events": {"event": "int64", "session": "int64", "product": "int64", "campaign": "text", "ts": "timestamp",
               "position": "int64", "dwell": "double", "query": "text"},
    "products": {"product": "int64", "category": "text", "brand": "text", "name": "text"},
    "prices": {"product": "int64", "since": "timestamp", "until": "timestamp", "price": "double"},
    "demand": {"hour": "timestamp", "visitors": "int64", "degrees": "double"},
    "labels": {"event": "int64", "bought": "int64"},
}
FILES = {"events": "events-*.csv.gz", "labels": "labels-*.csv.gz"}  # of the others, NAME.csv
WHOLE = ["hour", "weekday", "position", "dwell_ms", "user_events", "session_events", "since_last", "query_words", "age",
         "account_days", "visitors", "campaign_days", "bought"]
COLUMNS = ["event", "user", "ts", "hour", "weekday", "position", "dwell_ms", "user_events", "session_events", "since_last",
           "query_words", "device", "country", "age", "plan", "account_days", "category", "brand", "price", "price_level",
           "visitors", "degrees", "channel", "budget", "campaign_days", "bought"]
