# How a script of the guest is told what to do: a JSON object a line each way over TCP, one client. {"do": "x", ...} calls
# do_x of an object; what that cannot do is answered by {"error"}.
import json, socket


def serve(port, calls):
    """Answers a client until it goes."""
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
