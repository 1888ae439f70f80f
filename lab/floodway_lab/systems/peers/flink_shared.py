"""What both Flink systems share: a local cluster in one process, and a source for the data engines.

PyFlink has no source for sockets, and Flink's own, `socketTextStream`, makes a String of every
line and has no formats. So there is a small one here, in Java, as in Flink's guide to user-defined
sources: it gives rows, decoded by Flink's JSON format, or chunks of whole lines. It is compiled
when a system starts, by the compiler that Flink has for SQL.
"""

import io
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from kit import READ_BYTES, Task
from pyflink.common import Configuration
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.java_gateway import get_gateway

TOGETHER_US = 100
"""Results that came out within so long are handed over together, with the time of the last."""

SETTINGS = {
    "pipeline.object-reuse": "true",
    "pipeline.auto-watermark-interval": "5 ms",
    "execution.buffer-timeout.interval": "2 ms",
    "restart-strategy.type": "none",
}
"""What is set for both: no copies between operators, and no waiting for more than some
milliseconds; checkpoints are off, as they are by default."""

_LINES = """
package floodway;

import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.Arrays;
import org.apache.flink.api.common.serialization.DeserializationSchema;
import org.apache.flink.streaming.api.functions.source.legacy.RichSourceFunction;
import org.apache.flink.streaming.api.functions.source.legacy.SourceFunction.SourceContext;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.util.Collector;

public class Lines extends RichSourceFunction implements Collector {
    private final int port;
    private final DeserializationSchema format;
    private volatile boolean wanted = true;
    private transient SourceContext out;

    public Lines(int port, DeserializationSchema format) {
        this.port = port;
        this.format = format;
    }

    public void open(OpenContext context) throws Exception {
        if (format != null) {
            format.open(null);
        }
    }

    public void run(SourceContext context) throws Exception {
        out = context;
        Socket socket = new Socket();
        socket.setReceiveBufferSize(%(size)d);
        socket.connect(new InetSocketAddress("127.0.0.1", port));
        InputStream in = socket.getInputStream();
        byte[] buffer = new byte[4 * %(size)d];
        int held = 0;
        while (wanted) {
            int count = in.read(buffer, held, buffer.length - held);
            if (count < 0) {
                break;
            }
            int stop = held + count;
            int first;
            synchronized (out.getCheckpointLock()) {
                first = give(buffer, stop);
            }
            held = stop - first;
            System.arraycopy(buffer, first, buffer, 0, held);
        }
        socket.close();
    }

    private int give(byte[] buffer, int stop) throws Exception {
        int first = 0;
        if (format == null) {
            int last = stop;
            while (last > 0 && buffer[last - 1] != 10) {
                last--;
            }
            if (last > 0) {
                out.collect(Arrays.copyOfRange(buffer, 0, last));
            }
            return last;
        }
        for (int at = 0; at < stop; at++) {
            if (buffer[at] == 10) {
                format.deserialize(Arrays.copyOfRange(buffer, first, at), this);
                first = at + 1;
            }
        }
        return first;
    }

    public void collect(Object row) {
        out.collect(row);
    }

    public void close() {
    }

    public void cancel() {
        wanted = false;
    }
}
"""

_TOLD = """
package floodway;

import java.io.BufferedWriter;
import java.io.FileWriter;
import java.time.Instant;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.streaming.api.functions.sink.legacy.RichSinkFunction;
import org.apache.flink.streaming.api.functions.sink.legacy.SinkFunction.Context;
import org.apache.flink.types.Row;

public class Told extends RichSinkFunction {
    private final String folder;
    private transient BufferedWriter out;
    private transient long flushed;

    public Told(String folder) {
        this.folder = folder;
    }

    public void open(OpenContext context) throws Exception {
        int part = getRuntimeContext().getTaskInfo().getIndexOfThisSubtask();
        out = new BufferedWriter(new FileWriter(folder + "/told-" + part), %(size)d);
    }

    public void invoke(Object given, Context context) throws Exception {
        Instant now = Instant.now();
        long at = now.getEpochSecond() * 1000000L + now.getNano() / 1000;
        Row row = (Row) given;
        for (int field = 0; field < row.getArity(); field++) {
            out.write(String.valueOf(row.getField(field)));
            out.write(9);
        }
        out.write(Long.toString(at));
        out.write(10);
        if (at - flushed > 500000L) {
            out.flush();
            flushed = at;
        }
    }

    public void close() throws Exception {
        if (out != null) {
            out.close();
        }
    }
}
"""

_LOOKUP = """
package floodway;

import java.util.Map;
import org.apache.flink.table.functions.ScalarFunction;

public class Lookup extends ScalarFunction {
    private final Map known;

    public Lookup(Map known) {
        this.known = known;
    }

    public String eval(String key) {
        return (String) known.get(key);
    }
}
"""


class Cluster:
    """A local cluster in one Java process, with the classes above.

    Parameters
    ----------
    task
        What is to be done.
    settings
        Of Flink, besides those that both systems have. Options with a dot in their name are more.
    """

    def __init__(self, task: Task, settings: dict[str, str]) -> None:
        config = Configuration()
        more = {name: value for name, value in task.options.items() if "." in name}
        here = {"io.tmp.dirs": task.folder}  # it may be killed, and then nobody else cleans up
        for name, value in {**SETTINGS, **settings, **here, **more}.items():
            config.set_string(name, value)
        self._task = task
        self.jvm = get_gateway().jvm
        self.env = StreamExecutionEnvironment.get_execution_environment(config)
        self.env.set_parallelism(task.dop)
        jar = Path(task.folder) / "floodway.jar"
        jar.write_bytes(self._compiled())
        self.env.add_jars(jar.as_uri())

    def _compiled(self) -> bytes:
        """Return the classes as a jar."""
        found = io.BytesIO()
        with zipfile.ZipFile(found, "w") as jar:
            for source in (_LINES, _TOLD, _LOOKUP):
                compiler = self.jvm.org.codehaus.janino.SimpleCompiler()
                reader = self.jvm.java.io.StringReader(source % {"size": READ_BYTES})
                compiler.cook("floodway", reader)
                for name, code in compiler.getBytecodes().items():
                    jar.writestr(name.replace(".", "/") + ".class", bytes(code))
        return found.getvalue()

    def lines(self, form: Any, kind: Any) -> list[Any]:
        """Return a stream, as Java has it, for each port.

        Parameters
        ----------
        form
            The format that decodes a line; None for chunks of whole lines.
        kind
            The type of what is in the stream.
        """
        env = self.env._j_stream_execution_environment  # noqa: SLF001 - the only way to a source
        return [
            env.addSource(self.jvm.floodway.Lines(port, form), f"port {port}", kind)
            for port in self._task.ports
        ]


def told(folder: str) -> Iterator[tuple[list[list[str]], int]]:
    """Return what the sink has written down: the fields of some results, and when they came out."""
    for path in sorted(Path(folder).glob("told-*")):
        held: list[list[str]] = []
        first_us = at_us = 0
        with path.open() as lines:
            for line in lines:
                *fields, stamp = line.split("\t")
                now_us = int(stamp)
                if now_us - first_us > TOGETHER_US:
                    if held:
                        yield held, at_us
                    held, first_us = [], now_us
                held.append(fields)
                at_us = now_us
        if held:
            yield held, at_us


def as_map(jvm: Any, items: Iterable[tuple[str, str]]) -> Any:
    """Return a map of Java."""
    found = jvm.java.util.HashMap()
    for key, value in items:
        found.put(key, value)
    return found
