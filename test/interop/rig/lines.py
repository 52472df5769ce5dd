# How a script in the guest is controlled: one JSON object per line in each direction over TCP, one client. {"do": "x",
# ...} calls do_x of an object; if that fails, the reply is {"error"}.
import json, socket


def serve(port, calls):
    """Serves a client until it disconnects."""
    listener = socket.socket(socket.AF_INET6)
    listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(('::', port))
    listener.listen(1)
    client, _ = listener.accept()
    lines = client.makefile('rw')
    for line in lines:
        asked = json.loads(line)
        try:
            answer = getattr(calls, 'do_' + asked['do'])(asked)
        except Exception as error:
            answer = dict(error='%s: %s' % (asked['do'], error))
        lines.write(json.dumps(answer) + '\n')
        lines.flush()
