"""Tenant limits in Quorate, for the launchers of Nodepool and Zuul.

A launcher asks before it boots the nodes of a request, and says when they are gone:

    quota = TenantQuota(Client(["http://10.0.0.1:7101", "http://10.0.0.2:7101"]), launcher="nl01", on_lost=retire)
    try:
        granted = quota.request(request.id, request.tenant_name, needed)
    except Denied as denial:
        ...  # denial.never_fits: decline the request; otherwise pause, and ask again
    ...
    quota.release(request.id)

With wait=SECONDS a request that does not fit waits in the queue instead, see docs/from-zuul.md.

The id of the node request is the id of the allocation: asking twice holds once, also after a crash of the launcher.
Each allocation is a lease, which a thread renews; if the launcher dies, it ends after the TTL. A new launcher process
calls resume() with the requests whose nodes still exist.

Only the standard library is needed, Python 3.8 or newer. The tree of tenants is the one that

    quorate apply --from zuul -f nodepool.yaml

makes: a node for each tenant with limits, and the resources servers, cores, ram (in bytes), volumes and volume-gb.
"""

import hashlib
import json
import logging
import math
import ssl
import threading
import time
import urllib.error
import urllib.request

# The most renewals in one call of the API.
RENEWALS_AT_ONCE = 1000

# Names of Nodepool's quotas that have another name in the tree.
RESOURCES = {"instances": "servers", "volume_gb": "volume-gb"}

MIB = 1 << 20

log = logging.getLogger("quorate_quota")


class QuorateError(Exception):
    """An answer of a server that is an error. code is that of the API, such as not_found."""

    def __init__(self, code, message):
        super().__init__("%s: %s" % (code, message))
        self.code = code


class Unavailable(QuorateError):
    """No server has answered in time. A request may have been carried out: repeat it under the same id."""


class Denied(QuorateError):
    """The request does not fit now. never_fits is true if waiting does not help, because it is larger than a limit.

    violations has a dictionary for each limit in the way, with the keys tree, node, resource, limit, used, requested
    and missing; an absent number is 0.
    """

    def __init__(self, message, decision):
        super().__init__("resource_exhausted", message)
        self.never_fits = bool(decision.get("neverFits", False))
        self.violations = decision.get("violations", [])


class Client:
    """Calls the HTTP API of a cluster: the server that answered last, and the next one if that fails."""

    def __init__(self, servers, token_file=None, ca_file=None, attempt_timeout=5.0, patience=30.0):
        """servers are URLs. The token in token_file is read for each call, so it may be replaced.

        An attempt at one server takes at most attempt_timeout seconds, and a call with all attempts about patience.
        """
        if not servers:
            raise ValueError("servers is empty: name the URL of at least one server")
        self.servers = [server.rstrip("/") for server in servers]
        self.token_file = token_file
        self.context = ssl.create_default_context(cafile=ca_file) if ca_file else None
        self.attempt_timeout = attempt_timeout
        self.patience = patience
        self._current = 0

    def call(self, method, message):
        """Calls a method, such as "AllocationService/Allocate", and returns the answer as a dictionary.

        All calls of this module may be repeated, so one that was not answered is repeated at the next server.
        """
        give_up = time.monotonic() + self.patience
        pause = 0.05
        while True:
            try:
                return self._attempt(method, message)
            except Unavailable:
                if time.monotonic() + pause > give_up:
                    raise
            self._current = (self._current + 1) % len(self.servers)
            time.sleep(pause)
            pause = min(2 * pause, 2.0)

    def _attempt(self, method, message):
        headers = {"Content-Type": "application/json"}
        if self.token_file:
            with open(self.token_file, encoding="ascii") as file:
                headers["Authorization"] = "Bearer " + file.read().strip()
        request = urllib.request.Request(
            "%s/quorate.v1.%s" % (self.servers[self._current], method),
            data=json.dumps(message).encode(), headers=headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=self.attempt_timeout, context=self.context) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as failure:
            raise _error_of(failure.code, failure.read()) from None
        except (OSError, ValueError) as failure:  # ValueError: the answer was cut off
            raise Unavailable("unavailable", str(failure)) from failure


def _error_of(status, body):
    try:
        answer = json.loads(body)
        code, message = answer["code"], answer.get("message", "")
    except (ValueError, KeyError, TypeError):
        code, answer = "unavailable" if status >= 500 else "unknown", {}
        message = "HTTP status %d" % status
    for detail in answer.get("details", []):
        if code == "resource_exhausted" and detail.get("type") == "quorate.v1.Decision":
            return Denied(message, detail.get("debug", {}))
    if code in ("unavailable", "deadline_exceeded"):
        return Unavailable(code, message)
    return QuorateError(code, message)


def node_name(tenant):
    """Returns the name of the node of a tenant: what "quorate apply --from zuul" makes of tenant-name."""
    name = ""
    for position, byte in enumerate(tenant.encode()):
        char = chr(byte)
        rest = tenant.encode()[1:2].decode("latin-1")
        if _is_word(char) and not (position == 0 and char == "_" and rest and not _is_word(rest) and rest not in ".@-"):
            name += char
        elif position > 0 and char in ".@-":
            name += char
        else:
            name += ("_" if position == 0 else "") + "+%02X" % byte
    if len(name) > 63:
        name = name[:45] + "++" + hashlib.sha256(tenant.encode()).hexdigest()[:16]
    return name


def _is_word(char):
    return char.isascii() and (char.isalnum() or char == "_")


def amounts_of(needed):
    """Converts what a request needs to amounts of the tree of tenants.

    needed is a dictionary, or an object with one in its attribute quota, such as Nodepool's QuotaInformation:
    instances, cores, ram (in MiB), volumes, volume-gb, and resources of a provider. Infinite and missing values are
    left out.
    """
    needed = dict(getattr(needed, "quota", needed))
    needed.update(needed.pop("compute", {}))
    amounts = {}
    for name, amount in needed.items():
        if amount is None or math.isinf(amount):
            continue
        amounts[RESOURCES.get(name, name)] = math.ceil(amount * MIB if name == "ram" else amount)
    return amounts


def quota_of(amounts):
    """Converts amounts of the tree to Nodepool's names and units."""
    names = {resource: name for name, resource in RESOURCES.items() if name != "volume_gb"}
    return {names.get(resource, resource): amount / MIB if resource == "ram" else amount
            for resource, amount in amounts.items()}


def queue_priority(request_id, relative_priority=0):
    """Returns the priority of a node request, below 0. Higher ones are granted first.

    request_id begins with the precedence of the pipeline, such as 100-0000000007. Lower numbers come first in Zuul, of
    relative_priority too, which decides between requests of equal precedence and is counted up to 999.
    """
    precedence, dash, _ = request_id.partition("-")
    if not dash or not precedence.isdecimal():
        raise ValueError("request_id is %r: it begins with the precedence, as 100-0000000007 does" % request_id)
    return -(1000 * int(precedence) + min(max(int(relative_priority), 0), 999))


class TenantQuota:
    """Holds the quota of node requests. It may be used by several threads."""

    def __init__(self, client, launcher, tree="tenants", ttl=300.0, on_lost=None, on_granted=None, poll=5.0):
        """launcher names this launcher, and is in the label zuul/launcher of its allocations.

        An allocation ends ttl seconds after its last renewal, 1 to 604800. on_lost is called, in the thread that
        renews, with the id of a request whose quota ended although it was not released, or that has left the queue:
        retire its nodes. on_granted is called there with the id of a request that has waited and is granted. While
        requests wait, the thread asks for them every poll seconds, 0.1 to 30.
        """
        if not 1 <= ttl <= 604800:
            raise ValueError("ttl is %r: allowed are 1 to 604800 seconds" % ttl)
        if not 0.1 <= poll <= 30:
            raise ValueError("poll is %r: allowed are 0.1 to 30 seconds" % poll)
        self.client = client
        self.launcher = launcher
        self.tree = tree
        self.ttl = ttl
        self.poll = poll
        self.on_lost = on_lost or (lambda request_id: None)
        self.on_granted = on_granted or (lambda request_id: None)
        self._lock = threading.Lock()
        self._ends = {}  # when an allocation ends if it is not renewed, by request id; a time of time.monotonic
        self._granted, self._waiting = set(), set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep_renewing, name="quorate-quota", daemon=True)
        self._thread.start()

    def close(self):
        """Stops renewing. What is held ends after the TTL, unless a new process resumes it."""
        self._stop.set()
        self._thread.join()

    def request(self, request_id, tenant, needed, provider=None, priority=0, wait=0):
        """Asks for the quota of a node request, and returns whether it is granted.

        tenant is the tenant's name, or None: then only limits of all tenants together apply. provider is (tree, node)
        of the pool that shall serve the request, if pools are in Quorate too: both are granted, or none. With wait, in
        seconds, a request that does not fit waits in the queue, by priority (see queue_priority) and arrival, and the
        answer is False: on_granted is called later, or call is_granted. Without it, it raises Denied. A request that
        can never fit always raises Denied.
        """
        message = {
            "id": request_id, "claims": self._claims(tenant, needed, provider), "priority": str(priority),
            "ttlMs": str(int(self.ttl * 1000)),
            "labels": {"zuul/launcher": self.launcher, "zuul/tenant": tenant or ""},
        }
        if wait:
            message.update(mode="MODE_WAIT", waitMs=str(int(wait * 1000)))
        sent = time.monotonic()
        answer = self.client.call("AllocationService/Allocate", message)
        self._remember(request_id, answer, sent, is_new=True)
        return self.is_granted(request_id)

    def is_granted(self, request_id):
        """Returns whether the quota of a request is held, as of the last renewal."""
        with self._lock:
            return request_id in self._granted and self._ends[request_id] > time.monotonic()

    def waiting(self):
        """Returns what waits in the tree of tenants, in the order of the queue: a dictionary for each request.

        Its keys are id, position (among those that wait for the same limit) and violations, as those of Denied.
        """
        return [{"id": request["allocation"]["id"], "position": int(request["allocation"]["waiting"]["position"]),
                 "violations": request["decision"].get("violations", [])}
                for request in self._pages("AllocationService/ListWaiting", {"tree": self.tree}, "requests")]

    def release(self, request_id):
        """Gives the quota of a request back, or takes it out of the queue. Releasing twice is harmless."""
        with self._lock:
            self._forget(request_id)
        try:
            self.client.call("AllocationService/Release", {"id": request_id})
        except QuorateError as failure:
            if failure.code != "not_found":
                raise

    def resume(self, request_ids):
        """Takes over what an earlier process of this launcher holds, and returns the ids that are held.

        request_ids are the requests whose nodes still exist. What is held for other requests is released.
        """
        wanted, held = set(request_ids), set()
        for allocation in self._allocations({"zuul/launcher": self.launcher}):
            request_id = allocation["id"]
            if request_id not in wanted:
                self.release(request_id)
                continue
            with self._lock:
                self._ends[request_id] = math.inf  # known after the renewal
            held.add(request_id)
        self.renew()
        with self._lock:
            return held & self._granted

    def _claims(self, tenant, needed, provider):
        amounts = {name: str(amount) for name, amount in amounts_of(needed).items()}
        claims = [{"tree": self.tree, "node": node_name(tenant) if tenant else "", "amounts": amounts}]
        if provider:
            claims.append({"tree": provider[0], "node": provider[1], "amounts": amounts})
        return claims

    def get_quota_limits(self, tenant):
        """Returns the limits of a tenant by Nodepool's names; what is not limited is infinite."""
        return quota_of({r["resource"]: _limit(r) for r in self._usage(self._node_of(tenant))})

    def get_quota_used(self, tenant):
        """Returns what a tenant holds, over all launchers. One without a node in the tree is found by its label."""
        if tenant and self._node_of(tenant):
            return quota_of({r["resource"]: int(r["subtree"]) for r in self._usage(node_name(tenant))})
        used = {}
        for allocation in self._allocations({"zuul/tenant": tenant or ""}):
            for claim in allocation["claims"]:
                for resource, amount in claim["amounts"].items() if claim["tree"] == self.tree else ():
                    used[resource] = used.get(resource, 0) + int(amount)
        return quota_of(used)

    def estimated_quota_left(self, tenant):
        """Returns what a request of a tenant could get now. Others may take it meanwhile: request() decides."""
        return quota_of({r["resource"]: int(r["headroom"]) if "headroom" in r else math.inf
                         for r in self._usage(self._node_of(tenant))})

    def has_remaining_quota(self, tenant, needed, provider=None):
        """Returns whether a request would be granted now, without making it."""
        answer = self.client.call("AllocationService/Explain", {
            "request": {"id": "what-if", "claims": self._claims(tenant, needed, provider)}})
        return answer["decision"]["outcome"] == "OUTCOME_GRANTED"

    def _usage(self, node):
        return self.client.call("TreeService/GetUsage", {"tree": self.tree, "node": node})["nodes"][0]["resources"]

    def _node_of(self, tenant):
        """Returns the node where a tenant counts: its own if the tree has one, else the root."""
        node = node_name(tenant) if tenant else ""
        try:
            self._usage(node)
        except QuorateError as failure:
            if failure.code != "not_found" or not node:
                raise
            self._usage("")  # raises if the tree does not exist, or this launcher may not read it
            return ""
        return node

    def _allocations(self, labels):
        return self._pages("AllocationService/ListAllocations", {"labels": labels}, "allocations")

    def _pages(self, method, message, records):
        token = ""
        while True:
            page = self.client.call(method, dict(message, pageSize=1000, pageToken=token))
            yield from page[records]
            token = page["nextPageToken"]
            if not token:
                return

    def _remember(self, request_id, answer, sent, is_new):
        allocation = answer["allocation"]
        left = (int(allocation["expiresLedgerMs"]) - int(answer["write"]["ledgerTimeMs"])) / 1000
        with self._lock:
            if not is_new and request_id not in self._ends:
                return  # it was released while it was renewed
            has_waited = request_id in self._waiting
            if allocation["state"] == "ALLOCATION_STATE_HELD":
                self._waiting.discard(request_id)
                self._granted.add(request_id)
                self._ends[request_id] = sent + left
            else:  # the servers keep its place for two minutes
                self._waiting.add(request_id)
                self._ends[request_id] = math.inf
            is_granted = has_waited and request_id not in self._waiting
        if is_granted and not is_new:  # request() has told its caller
            self.on_granted(request_id)

    def _forget(self, request_id):
        self._granted.discard(request_id)
        self._waiting.discard(request_id)
        return self._ends.pop(request_id, None) is not None

    def _keep_renewing(self):
        every = min(self.ttl / 3, 30.0)
        due = time.monotonic() + every
        while not self._stop.wait(min(self.poll, max(due - time.monotonic(), 0))):
            try:
                if time.monotonic() < due:
                    self._renew_waiting()
                    continue
                due = time.monotonic() + every
                self.renew()
            except Unavailable as failure:  # the next round tries again, and reports what has ended by then
                log.warning("the quota of node requests is not renewed: %s", failure)
            except Exception:  # of on_lost or on_granted, for example: it must not end the renewals of all others
                log.exception("the quota of node requests is not renewed")

    def renew(self):
        """Renews everything that is held or waits. The thread of this object calls it three times in a TTL."""
        with self._lock:
            ids = list(self._ends)
        self._renew_all(ids)

    def _renew_waiting(self):
        with self._lock:
            ids = list(self._waiting)
        self._renew_all(ids)

    def _renew_all(self, ids):
        try:
            for start in range(0, len(ids), RENEWALS_AT_ONCE):
                self._renew_batch(ids[start:start + RENEWALS_AT_ONCE])
        finally:
            now = time.monotonic()
            with self._lock:
                late = [request_id for request_id, end in self._ends.items() if end <= now]
            for request_id in late:
                self._lose(request_id)

    def _renew_batch(self, ids):
        sent = time.monotonic()
        answer = self.client.call("AllocationService/BatchRenew", {"renewals": [{"id": i} for i in ids]})
        for request_id, outcome in zip(ids, answer["outcomes"]):
            if "renewed" in outcome:
                self._remember(request_id, outcome["renewed"], sent, is_new=False)
            elif outcome["failure"]["code"] in ("not_found", "failed_precondition"):
                self._lose(request_id)

    def _lose(self, request_id):
        with self._lock:
            known = self._forget(request_id)
        if known:
            self.on_lost(request_id)


def _limit(usage):
    effective = usage.get("effective", {})
    return int(effective["amount"]) if "amount" in effective else math.inf
