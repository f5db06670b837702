"""Calls of the schema's procedures: prepared once a connection, values in and out in binary form.

The driver's cursors adapt every value and row anew, which for an append of one event takes three times as long
as all the rest of what the client does.
"""

from collections.abc import Sequence

from psycopg.errors import error_from_result
from psycopg.generators import execute
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from everfold.store.postgres_connections import Connection

_BINARY = 1
_FAILED = (ExecStatus.FATAL_ERROR, ExecStatus.BAD_RESPONSE)


class Call:
    """A procedure that commits, and its last parameter's value, which is what it gives back.

    Args:
        procedure: its name.
        oids: the types of its parameters that go in.
    """

    def __init__(self, procedure: str, oids: Sequence[int]) -> None:
        places = ", ".join(f"${number}" for number in range(1, len(oids) + 1))
        self._name = f"everfold_{procedure}".encode()
        self._statement = f"CALL {procedure}({places})".encode()
        self._oids = tuple(oids)
        self._formats = (_BINARY,) * len(oids)

    def run(self, connection: Connection, values: Sequence[bytes | None]) -> bytes:
        """Call it in one round trip and return what it gives, in binary form.

        Raises:
            psycopg.Error: nothing was stored; or the connection was lost, and it is not known.
        """
        if self._name not in connection.prepared:
            self._prepare(connection)
        wire = connection.pgconn
        wire.send_query_prepared(self._name, values, self._formats, _BINARY)
        # The procedure's own result comes first. An error after that is of waking the followers.
        result = _checked(connection, connection.wait(execute(wire))[0])
        value = result.get_value(0, 0)
        assert value is not None
        return value

    def _prepare(self, connection: Connection) -> None:
        try:
            connection.pgconn.send_prepare(self._name, self._statement, self._oids)
            _checked(connection, connection.wait(execute(connection.pgconn))[0])
        except BaseException:
            # Nobody knows whether the name is taken now.
            connection.close()
            raise
        connection.prepared.add(self._name)


def _checked(connection: Connection, result: PGresult) -> PGresult:
    if result.status in _FAILED:
        raise error_from_result(result, connection.info.encoding)
    return result
