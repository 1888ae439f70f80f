"""What a running flow tells about itself.

Each task fills a report (`report`) every 50 ms. The driver hands it to the `board`, which makes
rates, shares and percentiles of it: a `status`. The `endpoint` serves that over HTTP on the
loopback interface, as JSON and, through `prometheus`, as metrics; ``floodway top`` shows it.

The package imports nothing by itself: tasks need only `report` and `moments`.
"""
