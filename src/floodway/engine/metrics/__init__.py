"""What a running flow tells about itself.

Each task fills a report (`floodway.engine.control.report`) every 50 ms. The driver hands it to the
`board`, which keeps it in the task's `window` and makes rates, shares and percentiles of it: a
`status`. The `endpoint` serves that over HTTP on the loopback interface, as JSON and, through
`prometheus`, as metrics; ``floodway top`` shows it.
"""
