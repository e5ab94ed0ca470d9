"""An S3 server for tests. Prints its port, its port for TLS, and the file with the certificate to trust for that.

It serves until its standard input ends, which it does when the test that started it is gone.
"""

import logging
import sys
import tempfile
import threading

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server, make_ssl_devcert

logging.getLogger("werkzeug").setLevel(logging.ERROR)


def serve(ssl_context=None):
    # One request at a time: moto's state is not thread-safe.
    server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=False, ssl_context=ssl_context)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.port


with tempfile.TemporaryDirectory() as folder:
    certificate, key = make_ssl_devcert(folder + "/server", host="localhost")
    print(serve(), serve((certificate, key)), certificate, flush=True)
    sys.stdin.read()
