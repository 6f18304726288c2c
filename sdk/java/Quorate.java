import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeParseException;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.*;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLHandshakeException;

/**
 * The client of a Quorate cluster in one file, for JDK 17 or newer and nothing else: copy it into your project.
 *
 * <p>It asks another server when one does not answer, repeats calls under ids that it made once, waits for grants,
 * renews leases, ends them for their holder at the safe moment, and resumes watches. Messages are maps in the JSON
 * mapping of proto/quorate/v1: 64-bit integers come as strings, see {@link #number}, and fields with their zero value
 * are left out.
 *
 * <pre>java Quorate.java http://127.0.0.1:7101 cern:atlas/operations/web cores=4</pre>
 *
 * runs {@link #main}, which is an example. A client is safe for concurrent use.
 */
public final class Quorate {
    private static final Duration ATTEMPT_TIMEOUT = Duration.ofSeconds(5), PATIENCE = Duration.ofSeconds(30);
    private static final long POLL_MS = 10_000, FIRST_PAUSE_MS = 50, LONGEST_PAUSE_MS = 1000, LONGEST_HINT_MS = 60_000;
    private static final int MOST_RENEWALS = 1000, MOST_WATCHED = 1000, MOST_BYTES = 64 << 20;
    /** How often leases look at their clock, in nanoseconds. */
    private static final long SUSPENSION_CHECK = 1_000_000_000;
    private static final Duration WATCHED_TTL = Duration.ofSeconds(10), SILENCE = Duration.ofSeconds(20);
    /** Methods that would do something else when they are repeated: make another token, or find the secret spent. */
    private static final Set<String> UNREPEATABLE = Set.of("admin.v1.AccessService/Bootstrap", "admin.v1.AccessService/CreateToken",
        "admin.v1.AccessService/RotateToken");
    /** What a message of a watch has that is not a heartbeat. */
    private static final Set<String> CHANGES = Set.of("change", "crossing", "revision", "event");
    /** The codes of servers. */
    private static final Set<String> SERVER_CODES = Set.of("canceled", "unknown", "invalid_argument",
        "deadline_exceeded", "not_found", "already_exists", "permission_denied", "resource_exhausted",
        "failed_precondition", "aborted", "out_of_range", "unimplemented", "internal", "unavailable", "data_loss",
        "unauthenticated");
    private static final Set<String> WITH_REQUEST_ID = Set.of("ApplyTrees", "SetLimits", "DeleteTree", "MoveNode",
        "CordonNode", "UncordonNode", "RollBack");

    private final List<URI> servers = new ArrayList<>();
    private final AtomicInteger current = new AtomicInteger();
    private final HttpClient http;
    private final Supplier<String> token;
    private volatile String namespace; // null for that of the caller
    private final Renewer renewer = new Renewer();
    private final ScheduledExecutorService timers =
        Executors.newSingleThreadScheduledExecutor(task -> daemon(task, "timers"));

    /** A client without credentials; see {@link #Quorate(List, Supplier, SSLContext)}. */
    public Quorate(List<String> servers) { this(servers, null, null); }

    /**
     * A client of the cluster that the given servers belong to, such as "http://10.0.0.1:7101". One suffices, because
     * every node forwards to the leader; with more the client can fail over. The token, if not null, is asked for at
     * each attempt, and not sent over http to other machines. The SSL context, if not null, has the authorities to
     * trust and the client's certificate. Throws IllegalArgumentException for a malformed address.
     */
    public Quorate(List<String> servers, Supplier<String> token, SSLContext tls) {
        if (servers.isEmpty()) {
            throw new IllegalArgumentException("name at least one server, such as http://127.0.0.1:7101");
        }
        for (String address : servers) {
            URI uri = URI.create(address.contains("://") ? address : (tls == null ? "http://" : "https://") + address);
            boolean isSecure = "https".equals(uri.getScheme());
            if (uri.getHost() == null || !isSecure && !"http".equals(uri.getScheme())) {
                throw new IllegalArgumentException("server \"" + address
                    + "\" is not an address: write http://host:port");
            }
            if (token != null && !isSecure && !uri.getHost().matches("localhost|127\\..*|\\[::1\\]")) {
                throw new IllegalArgumentException("server " + address
                    + ": a token is not sent in plain text to another machine");
            }
            this.servers.add(URI.create(uri.toString().replaceAll("/$", "")));
        }
        this.token = token;
        HttpClient.Builder builder = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1)
            .followRedirects(HttpClient.Redirect.NEVER).connectTimeout(Duration.ofSeconds(2))
            .executor(Executors.newCachedThreadPool(task -> daemon(task, "http")));
        http = (tls == null ? builder : builder.sslContext(tls)).build();
    }

    /**
     * Sets the namespace of ids in requests without one. The default is that of the caller: its user, or "default"
     * without a credential. Returns this client.
     */
    public Quorate inNamespace(String name) {
        namespace = name;
        return this;
    }

    private static Thread daemon(Runnable task, String name) {
        Thread thread = new Thread(task, "quorate-" + name);
        thread.setDaemon(true);
        return thread;
    }

    // Calls.

    /** An error of a call. */
    public static class CallException extends RuntimeException {
        /** The code of Connect and gRPC, such as "not_found". */
        public final String code;
        /** True if a server sent the error. */
        public final boolean isAnswer;
        private final List<Object> details;
        private final boolean wasSent;

        CallException(String code, String message, List<Object> details, boolean isAnswer, boolean wasSent,
            Throwable cause) {
            super(message + " (" + code + ")", cause);
            this.code = code;
            this.details = details;
            this.isAnswer = isAnswer;
            this.wasSent = wasSent;
        }

        /** The message quorate.v1.Decision of a denial; empty for other errors. */
        public Map<String, Object> decision() { return detail("quorate.v1.Decision"); }

        /** The message quorate.v1.Problem of every other answer: a stable reason, and the field. */
        public Map<String, Object> problem() { return detail("quorate.v1.Problem"); }

        /** True if another attempt may succeed. */
        public boolean isTransient() { return Set.of("unavailable", "deadline_exceeded", "canceled").contains(code); }

        /** True if a write may have been carried out nevertheless: repeat it with the same id, or read. */
        public boolean mayBeDone() {
            if (!isTransient() && !Set.of("unknown", "internal").contains(code)) return false;
            return problem().isEmpty() ? wasSent : !Boolean.TRUE.equals(problem().get("notApplied"));
        }

        private boolean isRefusalOfCaller() { return isAnswer && code.equals("unauthenticated"); }

        private long retryAfterMs() {
            String delay = (String) detail("google.rpc.RetryInfo").getOrDefault("retryDelay", "0s");
            return Math.min((long) (Double.parseDouble(delay.replace("s", "")) * 1000), LONGEST_HINT_MS);
        }

        private Map<String, Object> detail(String type) {
            for (Object detail : details) {
                if (type.equals(object(detail).get("type"))) return object(object(detail).get("debug"));
            }
            return Map.of();
        }
    }

    /** A request that can never fit, or may not wait. {@link #decision} names every limit in the way. */
    public static final class Denied extends CallException {
        Denied(CallException e) { super(e.code, e.getMessage(), e.details, true, true, e); }
    }

    /** No server answered in time. The request may have been carried out; acquire has tried to withdraw it. */
    public static final class Unavailable extends RuntimeException {
        Unavailable(CallException e) { super("no server answers: " + e.getMessage(), e); }
    }

    /** A request that was not granted within its time to wait. */
    public static final class TimedOut extends RuntimeException {
        /** The limits that were in the way when the time was over. */
        public final Map<String, Object> decision;

        TimedOut(Map<String, Object> decision) {
            super("not granted in time: " + decision.get("explanation"));
            this.decision = decision;
        }
    }

    /**
     * Makes a call such as "AllocationService/GetAllocation" within 30 seconds. Services of other packages than
     * quorate.v1 are named with theirs: "admin.v1.ClusterService/GetStatus".
     */
    public Map<String, Object> call(String method, Map<String, Object> request) {
        return call(method, request, PATIENCE);
    }

    /**
     * Makes a call, at one server after the other until one answers. A change of configuration without a requestId and
     * an allocation without an id get one, the same for all attempts. Throws CallException.
     */
    public Map<String, Object> call(String method, Map<String, Object> request, Duration timeout) {
        return call(method, withIds(method, request), now() + timeout.toNanos(), new long[1]);
    }

    private Map<String, Object> withIds(String method, Map<String, Object> request) {
        String name = method.substring(method.indexOf('/') + 1);
        boolean names = name.equals("Allocate") || request.containsKey("id");
        if (namespace != null && method.startsWith("AllocationService/") && names && !request.containsKey("namespace")) {
            request = new LinkedHashMap<>(request);
            request.put("namespace", namespace);
        }
        String key = name.equals("Allocate") ? "id" : "requestId";
        if (!name.equals("Allocate") && !WITH_REQUEST_ID.contains(name) || request.containsKey(key)) return request;
        Map<String, Object> complete = new LinkedHashMap<>(request);
        complete.put(key, UUID.randomUUID().toString());
        return complete;
    }

    /** sentAt[0] becomes the time when the last attempt was sent. */
    private Map<String, Object> call(String method, Map<String, Object> request, long until, long[] sentAt) {
        CallException failure = null;
        Pauses pauses = new Pauses();
        while (true) {
            long limit = ATTEMPT_TIMEOUT.toNanos() + number(request.get("pollMs")) * 1_000_000;
            try {
                return attempt(method, request, Math.min(limit, until - now()), sentAt);
            } catch (CallException e) {
                if (!e.isTransient() || UNREPEATABLE.contains(method) && e.mayBeDone()) throw e;
                failure = failure != null && failure.mayBeDone() && !e.mayBeDone() ? failure : e;
                long pause = pauses.next(e);
                if (now() + pause * 1_000_000 >= until) throw failure;
                sleep(pause);
            }
        }
    }

    /** Makes one attempt. A server that refuses a token which its source has replaced meanwhile is asked once more. */
    private Map<String, Object> attempt(String method, Map<String, Object> request, long nanos, long[] sentAt) {
        long until = now() + nanos;
        String first = token();
        try {
            return attempt(method, request, nanos, sentAt, first);
        } catch (CallException e) {
            String newer = e.isRefusalOfCaller() ? token() : first;
            if (Objects.equals(newer, first)) throw e;
            return attempt(method, request, until - now(), sentAt, newer);
        }
    }

    /** Makes one attempt at the current server, and moves on to the next server if that fails. */
    private Map<String, Object> attempt(String method, Map<String, Object> request, long nanos, long[] sentAt,
        String token) {
        int index = current.get();
        sentAt[0] = now();
        long limit = Math.max(nanos, 1_000_000);
        HttpRequest.Builder post = request(index, method, "application/json", token).header("Connect-Timeout-Ms",
            String.valueOf(limit / 1_000_000)).POST(HttpRequest.BodyPublishers.ofString(Json.write(request)));
        CompletableFuture<HttpResponse<String>> answer = http.sendAsync(post.build(),
            HttpResponse.BodyHandlers.ofString());
        try {
            HttpResponse<String> response = answer.get(limit, TimeUnit.NANOSECONDS);
            return checkId(request, parse(response, response.body()));
        } catch (CallException e) {
            if (e.isTransient()) advance(index);
            throw e;
        } catch (TimeoutException e) {
            answer.cancel(true);
            advance(index);
            throw new CallException("deadline_exceeded", servers.get(index) + " did not answer in time", List.of(),
                false, true, e);
        } catch (ExecutionException e) {
            advance(index);
            throw networkFailure(index, e.getCause());
        } catch (InterruptedException e) {
            answer.cancel(true);
            Thread.currentThread().interrupt();
            throw new CancellationException("interrupted");
        }
    }

    private void advance(int failed) { current.compareAndSet(failed, (failed + 1) % servers.size()); }

    private CallException networkFailure(int index, Throwable cause) {
        boolean unsent = cause instanceof ConnectException || cause instanceof HttpConnectTimeoutException
            || cause instanceof SSLHandshakeException;
        return new CallException("unavailable", servers.get(index) + ": " + cause, List.of(), false, !unsent, cause);
    }

    private String token() { return token == null ? null : token.get(); }

    private HttpRequest.Builder request(int index, String method, String contentType, String token) {
        String path = "/quorate." + (method.indexOf('.') < 0 ? "v1." : "") + method;
        HttpRequest.Builder builder = HttpRequest.newBuilder(URI.create(servers.get(index) + path))
            .header("Content-Type", contentType).header("Connect-Protocol-Version", "1");
        return token == null ? builder : builder.header("Authorization", "Bearer " + token);
    }

    private static Map<String, Object> parse(HttpResponse<?> response, String body) {
        Map<String, Object> answer = null;
        try {
            answer = object(Json.read(body));
        } catch (IllegalArgumentException e) {
            // of a gateway
        }
        if (response.statusCode() == 200 && answer != null) return answer;
        if (answer != null && SERVER_CODES.contains(String.valueOf(answer.get("code")))) throw errorOf(answer);
        throw gatewayFailure(response);
    }

    /** What names the allocation of a request or record in the whole cluster: its id, and its namespace if that is known. */
    private static Map<String, Object> named(Map<String, Object> message) {
        Object namespace = message.getOrDefault("namespace", "");
        return "".equals(namespace) ? Map.of("id", message.getOrDefault("id", ""))
            : Map.of("namespace", namespace, "id", message.getOrDefault("id", ""));
    }

    /** For whom a lease was revoked: an id, after its namespace if that is another one, or a text; empty if it was not. */
    private static String revokerOf(Map<String, Object> record) {
        if (record.get("revokedBy") == null) return "";
        Map<String, Object> by = named(object(record.get("revokedBy")));
        if ("".equals(by.get("id")))
            return "END_REASON_KIND_DRAIN".equals(object(record.get("reason")).get("kind")) ? "a drain" : "another allocation";
        Object namespace = by.getOrDefault("namespace", "");
        return namespace.equals(record.getOrDefault("namespace", "")) ? (String) by.get("id")
            : namespace + " " + by.get("id");
    }

    /**
     * Makes an answer that is about another allocation than the request a broken connection: what something else reads
     * from too, or a proxy that mixes answers up, must not look like a grant.
     */
    private static Map<String, Object> checkId(Map<String, Object> request, Map<String, Object> answer) {
        List<Object> asked = new ArrayList<>(), told = list(answer.get("outcomes"));
        for (Object renewal : list(request.get("renewals"))) asked.add(object(renewal).get("id"));
        if (request.get("id") instanceof String id) {
            asked = List.of(id);
            told = List.of(Map.of("renewed", answer));
        }
        for (int i = 0; i < Math.min(asked.size(), told.size()); i++) {
            Object got = object(object(object(told.get(i)).get("renewed")).get("allocation")).getOrDefault("id", "");
            if (got.equals("") || got.equals(asked.get(i))) continue;
            throw new CallException("unavailable", "the answer is about \"" + got + "\" instead of \"" + asked.get(i)
                + "\": something else reads from this connection", List.of(), false, true, null);
        }
        return answer;
    }

    /**
     * The failure that an answer without the JSON of a server stands for, by the table of docs/clients.md. A status
     * below 500 says that the gateway refused the request before a server had all of it.
     */
    private static CallException gatewayFailure(HttpResponse<?> response) {
        int status = response.statusCode();
        String code = switch (status) {
            case 200, 400 -> "internal";
            case 401 -> "unauthenticated";
            case 403 -> "permission_denied";
            case 404, 405, 501 -> "unimplemented";
            case 408, 425, 429, 502, 503, 504 -> "unavailable";
            case 413, 414, 431 -> "invalid_argument";
            default -> "unknown";
        };
        long seconds = retryAfterSeconds(response.headers().firstValue("Retry-After").orElse(""));
        List<Object> details = seconds < 0 ? List.of() : List.of(Map.of("type", "google.rpc.RetryInfo", "debug",
            Map.of("retryDelay", seconds + "s")));
        boolean wasSeen = status == 200 || status >= 500 && status != 501;
        return new CallException(code, "HTTP " + status + " without an answer of a server", details, false, wasSeen,
            null);
    }

    /** The largest amount that servers take, in base units. */
    public static final long MAX_AMOUNT = (1L << 62) - 1;
    private static final java.util.regex.Pattern AMOUNT = java.util.regex.Pattern.compile(
        "((?:0|[1-9][0-9]*)(?:\\.[0-9]+)?)([eE][-+]?[0-9]{1,2})?([A-Za-z]*)");

    /**
     * Reads an amount of things that are counted: inCount("2k") is 2000. An amount is a decimal number with an optional
     * suffix: k M G T P E (powers of 1000) or Ki Mi Gi Ti Pi Ei (powers of 1024). Anything else, what is no whole number
     * of base units, and more than MAX_AMOUNT is an IllegalArgumentException.
     */
    public static long inCount(String text) { return amount(text, "things", 1, ""); }

    /** Reads an amount of the unit milli in thousandths: inMilli("2.5") and inMilli("2500m") are 2500. */
    public static long inMilli(String text) { return amount(text, "thousandths", 1000, "m"); }

    /** Reads an amount of bytes: inBytes("16Gi") is 17179869184. GiB means Gi; GB has two meanings, and is refused. */
    public static long inBytes(String text) { return amount(text, "bytes", 1, "iB"); }

    private static long amount(String text, String base, long one, String own) {
        var parts = AMOUNT.matcher(text);
        if (text.length() > 64 || !parts.matches()) {
            throw new IllegalArgumentException(text + " is not an amount: write a number and perhaps a suffix, such as "
                + "25, 250G or 1.5Gi");
        }
        boolean hasExponent = parts.group(2) != null;
        String suffix = parts.group(3);
        if (own.equals("iB") && suffix.endsWith(own)) suffix = suffix.substring(0, suffix.length() - 1);
        var factor = java.math.BigDecimal.valueOf(one);
        if (own.equals("m") && suffix.equals(own)) {
            factor = java.math.BigDecimal.ONE;
        } else if (!suffix.isEmpty()) {
            boolean isBinary = suffix.length() == 2 && suffix.endsWith("i");
            int power = 1 + (isBinary ? "KMGTPE" : "kMGTPE").indexOf(suffix.charAt(0));
            if (power == 0 || hasExponent || suffix.length() != (isBinary ? 2 : 1)) {
                throw new IllegalArgumentException(text + " is not an amount of " + base
                    + ": suffixes are k M G T P E and Ki Mi Gi Ti Pi Ei, and none after an exponent");
            }
            factor = factor.multiply(java.math.BigDecimal.valueOf(isBinary ? 1024 : 1000).pow(power));
        }
        var amount = new java.math.BigDecimal(parts.group(1) + (hasExponent ? parts.group(2) : "")).multiply(factor);
        if (amount.stripTrailingZeros().scale() > 0) {
            throw new IllegalArgumentException(text + " is not a whole number of " + base);
        }
        if (amount.compareTo(java.math.BigDecimal.valueOf(MAX_AMOUNT)) > 0) {
            throw new IllegalArgumentException(text + " is too large: an amount is at most " + MAX_AMOUNT + " " + base);
        }
        return amount.longValueExact();
    }

    /** The seconds of the header Retry-After, or those until its date; negative if there is none. */
    private static long retryAfterSeconds(String header) {
        if (header.matches("\\d{1,9}")) return Long.parseLong(header);
        try {
            return Math.max(ZonedDateTime.parse(header, DateTimeFormatter.RFC_1123_DATE_TIME).toEpochSecond()
                - System.currentTimeMillis() / 1000, 0);
        } catch (DateTimeParseException e) {
            return -1;
        }
    }

    private static CallException errorOf(Map<String, Object> e) {
        CallException error = new CallException((String) e.getOrDefault("code", "unknown"),
            (String) e.getOrDefault("message", ""),
            list(e.get("details")), true, true, null);
        return error.code.equals("resource_exhausted") && !error.decision().isEmpty() ? new Denied(error) : error;
    }

    /** Pauses grow, randomized by half, and are at least as long as an overloaded server asks for. */
    private static final class Pauses {
        private double interval = FIRST_PAUSE_MS;

        long next(CallException last) {
            double pause = interval * (0.5 + ThreadLocalRandom.current().nextDouble()), hint = last.retryAfterMs();
            interval = Math.min(interval * 1.5, LONGEST_PAUSE_MS);
            return (long) Math.max(pause, hint * (1 + ThreadLocalRandom.current().nextDouble() / 2));
        }
    }

    private static void sleep(long ms) {
        try {
            Thread.sleep(Math.max(ms, 0));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new CancellationException("interrupted");
        }
    }

    // Leases.

    /** Options of {@link #acquire}; null for the default of each. */
    public static final class Options {
        /** How long the request may wait; by default until the thread is interrupted. */
        public Duration timeout;
        /** How long before the end of its TTL the lease is over, a third of it at most; by default a tenth or 3 s. */
        public Duration margin;
        /** Is called when the lease is lost, in a thread that other leases wait for, so it must be quick. */
        public Consumer<Lost> onLost;
        /** Is called with each answer while the request waits, about every ten seconds. */
        public Consumer<Map<String, Object>> progress;
    }

    /**
     * Requests an allocation, a message quorate.v1.AllocateRequest, and renews it in the background until it is
     * released or lost. Without a mode it waits in the queue until it is granted, and leaves the queue if the caller
     * stops waiting. Throws Denied if it can never fit or may not wait, TimedOut, Unavailable, Lost if it ended while
     * it waited, CancellationException if the thread is interrupted, and CallException for any other answer.
     */
    public Lease acquire(Map<String, Object> request, Options options) {
        Map<String, Object> asked = new LinkedHashMap<>(withIds("AllocationService/Allocate", request));
        asked.putIfAbsent("mode", "MODE_WAIT");
        long until = now() + (options.timeout == null ? Long.MAX_VALUE / 2 : options.timeout.toNanos());
        if (options.timeout != null && asked.get("mode").equals("MODE_WAIT")) {
            asked.putIfAbsent("waitMs", Math.min(Math.max(options.timeout.toMillis(), 1000), 7L * 24 * 3600 * 1000));
        }
        Map<String, Object> waited = null;
        Thread atExit = withdrawAtExit(asked);
        try {
            while (true) {
                long[] sentAt = new long[1];
                long patience = now() + PATIENCE.toNanos() + POLL_MS * 1_000_000;
                Map<String, Object> answer = call("AllocationService/Allocate", asked, Math.min(until, patience),
                    sentAt);
                if (!object(answer.get("allocation")).get("state").equals("ALLOCATION_STATE_WAITING")) {
                    return newLease(answer, sentAt[0], waited != null, options);
                }
                waited = answer;
                asked.put("pollMs", POLL_MS);
                if (options.progress != null) options.progress.accept(answer);
                sleep(100 - (now() - sentAt[0]) / 1_000_000); // for servers that do not wait
            }
        } catch (CallException e) {
            throw acquireFailure(asked, waited, until, e);
        } catch (RuntimeException | Error e) { // interrupted, or of the caller's progress
            stopWaiting(asked);
            throw e;
        } finally {
            try {
                Runtime.getRuntime().removeShutdownHook(atExit);
            } catch (IllegalStateException e) {
                // the process ends
            }
        }
    }

    /** Withdraws the request if the process ends while it waits, as after Ctrl-C. The thread runs then. */
    private Thread withdrawAtExit(Map<String, Object> asked) {
        Thread hook = new Thread(() -> stopWaiting(asked), "quorate-withdraw");
        try {
            Runtime.getRuntime().addShutdownHook(hook);
        } catch (IllegalStateException e) {
            // the process ends already
        }
        return hook;
    }

    private RuntimeException acquireFailure(Map<String, Object> asked, Map<String, Object> waited, long until,
        CallException e) {
        if (waited != null && "ENDED".equals(e.problem().get("reason"))) {
            Object state = object(call("AllocationService/GetAllocation",
                named(asked)).get("allocation")).get("state");
            boolean isLate = "ALLOCATION_STATE_TIMED_OUT".equals(state);
            return isLate ? new TimedOut(object(waited.get("decision")))
                : new Lost((String) asked.get("id"), "ended", "", e);
        }
        if (!e.isTransient()) return e;
        if (waited != null || e.mayBeDone()) stopWaiting(asked);
        boolean isOver = waited != null && now() >= until - LONGEST_PAUSE_MS * 2_000_000;
        return isOver ? new TimedOut(object(waited.get("decision"))) : new Unavailable(e);
    }

    /** Removes the request from the queue; if no server answers, it leaves when its keepMs are over. */
    private void stopWaiting(Map<String, Object> asked) {
        boolean wasInterrupted = Thread.interrupted();
        try {
            call("AllocationService/Release", named(asked), Duration.ofSeconds(2));
        } catch (RuntimeException ignored) {
            // the caller gets the failure before this one
        } finally {
            if (wasInterrupted) Thread.currentThread().interrupt();
        }
    }

    private Lease newLease(Map<String, Object> answer, long sentAt, boolean hasWaited, Options options) {
        Lease lease = new Lease(object(answer.get("allocation")), number(object(answer.get("allocation")).get("fence")), options);
        long ttlNanos = lease.ttlMs() * 1_000_000;
        // The answer to a request that waited does not tell how long the lease lasts from now on.
        if (ttlNanos > 0 && (hasWaited || now() - sentAt > ttlNanos / 10)) {
            long[] renewedAt = new long[1];
            answer = call("AllocationService/Renew", Map.of("namespace", lease.namespace, "id", lease.id, "fence", lease.fence),
                now() + PATIENCE.toNanos(), renewedAt);
            sentAt = renewedAt[0];
        }
        lease.extend(object(answer.get("allocation")), sentAt, number(object(answer.get("write")).get("ledgerTimeMs")));
        if (ttlNanos > 0) renewer.add(lease);
        return lease;
    }

    /** A lease that is over although its holder did not release it. */
    public static final class Lost extends RuntimeException {
        /** The id of the allocation. */
        public final String id;
        /** "unrenewed" (the servers may still hold it for a moment), "ended", "preempted" or "taken". */
        public final String how;
        /** The id of the allocation for which it was revoked; empty if it is not known. */
        public final String by;

        Lost(String id, String how, String by, Throwable cause) {
            super("lease \"" + id + "\" is lost: " + how + (by.isEmpty() ? "" : " by " + by)
                + (cause == null ? "" : ": " + cause.getMessage()), cause);
            this.id = id;
            this.how = how;
            this.by = by;
        }
    }

    /** A clock in nanoseconds that no adjustment of the date moves and by which leases end for their holders. */
    static long now() { return System.nanoTime() + Suspension.nanos(); }

    /** The time in which the machine was suspended. On Linux, System.nanoTime leaves it out and /proc/uptime does not. */
    static final class Suspension {
        /** The second since the machine was started, and tests replace it; null where it is not known. */
        static Supplier<String> uptime = Files.isReadable(Path.of("/proc/uptime")) ? Suspension::readUptime : null;
        /** The two clocks are not read at the same moment, and one of them has hundredths of a second. */
        private static final long STEP = 100_000_000;
        private static long base = Long.MIN_VALUE, known, readAt;

        private static String readUptime() {
            try {
                return Files.readString(Path.of("/proc/uptime"));
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        static synchronized long nanos() {
            long time = System.nanoTime();
            if (uptime == null || base != Long.MIN_VALUE && time - readAt < STEP) return known;
            String text = uptime.get();
            long ahead = (long) (Double.parseDouble(text.substring(0, text.indexOf(' '))) * 1e9) - time;
            if (base == Long.MIN_VALUE) base = ahead;
            readAt = time;
            return known = Math.max(known, (ahead - base) / STEP * STEP);
        }
    }

    /**
     * An allocation that is renewed until it is released or lost. It ends for its holder by the holder's own monotonic
     * clock: a TTL after the last successful renewal was sent, less a margin. Until then no other allocation holds the
     * same, unless the lease was preempted without notice. On Linux the clock counts the time in which the machine is
     * suspended, and a lease whose time is over ends within about a second after that; on other systems it does not. Use
     * the fence where a late step must do no harm.
     */
    public final class Lease implements AutoCloseable {
        /** The id of the allocation. */
        public final String id;
        /** The namespace of the id. */
        public final String namespace;
        /** The token of the grant, larger than that of every earlier grant. */
        public final long fence;
        private final Options options;
        private final CountDownLatch over = new CountDownLatch(1), revoked = new CountDownLatch(1);
        private volatile Map<String, Object> record; // read with the renewer locked, so without a lock of its own
        private long safe = Long.MAX_VALUE, ends = Long.MAX_VALUE; // of now()
        private boolean isReleased;
        private Lost lost;
        private CallException failure;
        private ScheduledFuture<?> timer;

        Lease(Map<String, Object> record, long fence, Options options) {
            this.record = record;
            this.id = (String) record.get("id");
            this.namespace = (String) record.getOrDefault("namespace", "");
            this.fence = fence;
            this.options = options;
        }

        /** The record of the last answer, a message quorate.v1.Allocation. */
        public Map<String, Object> allocation() { return record; }

        /** Throws Lost or IllegalStateException if the lease is over. Call it before each step that needs the lease. */
        public synchronized void check() {
            expireIfDue();
            if (lost != null) throw lost;
            if (isReleased) throw new IllegalStateException("the lease was released");
        }

        /** Waits until the lease is over, and returns whether it is. */
        public boolean await(Duration most) throws InterruptedException {
            return over.await(most.toMillis(), TimeUnit.MILLISECONDS);
        }

        /** Waits until the lease is revoked for another allocation; returns whether it is. It lasts for its grace. */
        public boolean awaitRevoked(Duration most) throws InterruptedException {
            return revoked.await(most.toMillis(), TimeUnit.MILLISECONDS);
        }

        /** Why the lease was lost; null if it was not. */
        public synchronized Lost lost() { return lost; }

        /** In how long the servers may end the lease at the earliest unless it is renewed. */
        public synchronized Duration endsIn() {
            return Duration.ofNanos(ends == Long.MAX_VALUE ? ends : ends - now());
        }

        /** Releases the allocation; the lease is over at once. If no server answers, it ends with its TTL. */
        public void release() {
            synchronized (this) {
                isReleased = true;
                end(null);
            }
            try {
                call("AllocationService/Release", Map.of("namespace", namespace, "id", id, "fence", fence));
            } catch (CallException e) {
                if (!"FENCE_MISMATCH".equals(e.problem().get("reason"))) throw e;
                // It ended before, and another request has its id now.
            }
        }

        /** Releases the lease, also after it was lost. */
        @Override public void close() {
            boolean wasReleased;
            synchronized (this) { wasReleased = isReleased; }
            if (!wasReleased) release();
        }

        private long ttlMs() { return number(record.get("ttlMs")); }

        private synchronized void extend(Map<String, Object> renewed, long sentAt, long ledgerMs) {
            if (over.getCount() == 0) return;
            record = renewed;
            failure = null;
            if (renewed.get("revokedBy") != null) revoked.countDown();
            long expires = number(renewed.get("expiresLedgerMs")), ttl = ttlMs() * 1_000_000;
            if (expires == 0) return;
            ends = sentAt + (expires - ledgerMs) * 1_000_000;
            long margin = options.margin == null ? Math.min(ttl / 10, 3_000_000_000L)
                : Math.min(options.margin.toNanos(), ttl / 3);
            safe = ends - margin;
            setTimer();
        }

        /** Looks once a second, because no timer counts the time in which the machine is suspended. */
        private void setTimer() {
            if (timer != null) timer.cancel(false);
            timer = timers.schedule(this::lookAtClock, Math.min(safe - now(), SUSPENSION_CHECK), TimeUnit.NANOSECONDS);
        }

        private synchronized void lookAtClock() {
            expireIfDue();
            if (over.getCount() > 0) setTimer();
        }

        private synchronized void expireIfDue() {
            if (safe == Long.MAX_VALUE || now() < safe) return;
            String by = revokerOf(record);
            end(by.isEmpty() ? new Lost(id, "unrenewed", "", failure) : new Lost(id, "preempted", by, null));
        }

        private synchronized void noteFailure(CallException e) { failure = e; }

        private synchronized void end(Lost reason) {
            if (over.getCount() == 0) return;
            lost = reason;
            over.countDown();
            if (timer != null) timer.cancel(false);
            renewer.drop(this);
            if (reason != null && options.onLost != null) timers.execute(() -> options.onLost.accept(reason));
        }

        /** Applies the outcome of a renewal. Returns after how many milliseconds to renew again; negative for never. */
        private long apply(Map<String, Object> outcome, long sentAt) {
            Map<String, Object> renewed = object(outcome.get("renewed")), failed = object(outcome.get("failure"));
            if (!renewed.isEmpty()) {
                extend(object(renewed.get("allocation")), sentAt, number(object(renewed.get("write")).get("ledgerTimeMs")));
                return revoked.getCount() == 0 ? -1 : ttlMs() / 3; // renewals do not extend a revoked lease
            }
            String code = (String) failed.getOrDefault("code", "unknown"),
                by = revokerOf(allocation());
            CallException e = new CallException(code, (String) failed.getOrDefault("message", ""), List.of(), true,
                true, null);
            if (!Set.of("not_found", "failed_precondition", "aborted").contains(code)) {
                noteFailure(e);
                return Math.max(ttlMs() / 6, FIRST_PAUSE_MS);
            }
            end(new Lost(id, code.equals("aborted") ? "taken" : by.isEmpty() ? "ended" : "preempted", by, e));
            return -1;
        }
    }

    /** Renews the leases that are due together in one call, and follows the revocations of long ones by a stream. */
    private final class Renewer {
        private final Map<Lease, Long> due = new HashMap<>();
        private final Map<Map<String, Object>, Lease> watched = new ConcurrentHashMap<>();
        private boolean isRenewing, isWatching;
        private int failures;
        private volatile Watching watching;

        synchronized void add(Lease lease) {
            due.put(lease, later(lease.ttlMs() / 3));
            if (!isRenewing) daemon(this::renewLoop, "renewer").start();
            isRenewing = true;
            notifyAll();
            if (lease.ttlMs() <= WATCHED_TTL.toMillis()) return;
            watched.put(named(lease.record), lease);
            if (!isWatching) daemon(this::watchLoop, "revocations").start();
            isWatching = true;
            Watching old = watching; // leases that are added one after the other share one new stream
            if (old != null) timers.schedule(old::stop, 1, TimeUnit.SECONDS);
        }

        synchronized void drop(Lease lease) {
            due.remove(lease);
            notifyAll();
            watched.remove(named(lease.record), lease);
            if (watched.isEmpty() && watching != null) watching.stop();
        }

        private long later(double ms) {
            return now() + (long) (ms * 1_000_000 * (0.9 + ThreadLocalRandom.current().nextDouble() / 5));
        }

        private synchronized void setDue(Lease lease, long time) {
            if (due.containsKey(lease)) due.put(lease, time);
            notifyAll();
        }

        private void renewLoop() {
            for (List<Lease> batch = nextBatch(); !batch.isEmpty(); batch = nextBatch()) renew(batch);
        }

        /** Waits until a lease is due, and returns those to renew with it; none if there are no leases. */
        private synchronized List<Lease> nextBatch() {
            while (!due.isEmpty()) {
                long now = now(), first = Collections.min(due.values()) - now;
                if (first <= 0) {
                    return due.keySet().stream().filter(l -> due.get(l) - l.ttlMs() * 1_000_000 / 6 <= now)
                        .sorted(Comparator.comparing(due::get)).limit(MOST_RENEWALS).toList();
                }
                try {
                    wait(Math.min(first, SUSPENSION_CHECK) / 1_000_000 + 1);
                } catch (InterruptedException e) {
                    break; // nothing interrupts this thread
                }
            }
            isRenewing = false;
            return List.of();
        }

        /** Makes one attempt, which may take a sixth of the shortest TTL, so that several fit in a lease. */
        private void renew(List<Lease> batch) {
            long limitMs = ATTEMPT_TIMEOUT.toMillis();
            List<Object> renewals = new ArrayList<>();
            for (Lease lease : batch) {
                limitMs = Math.min(limitMs, Math.max(lease.ttlMs() / 6, FIRST_PAUSE_MS));
                renewals.add(Map.of("namespace", lease.namespace, "id", lease.id, "fence", lease.fence));
            }
            long[] sentAt = new long[1];
            try {
                List<Object> outcomes = list(attempt("AllocationService/BatchRenew", Map.of("renewals", renewals),
                    limitMs * 1_000_000, sentAt).get("outcomes"));
                for (int i = 0; i < batch.size(); i++) {
                    long again = batch.get(i).apply(object(outcomes.get(i)), sentAt[0]);
                    if (again < 0) synchronized (this) { due.remove(batch.get(i)); }
                    else setDue(batch.get(i), later(again));
                }
                failures = 0;
            } catch (RuntimeException e) {
                CallException failure = e instanceof CallException c ? c
                    : new CallException("internal", String.valueOf(e), List.of(), false, true, e);
                long pause = Math.max(Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS << Math.min(failures++, 10)),
                    failure.retryAfterMs());
                for (Lease lease : batch) {
                    lease.noteFailure(failure);
                    setDue(lease, later(Math.min(pause, Math.max(lease.ttlMs() / 6, FIRST_PAUSE_MS))));
                }
            }
        }

        /** An event only makes the renewer renew the lease, and the answer to that counts. */
        private void watchLoop() {
            Map<String, Object> position = Map.of();
            while (true) {
                Map<String, Object> request = new HashMap<>(position);
                synchronized (this) {
                    isWatching = !watched.isEmpty();
                    if (!isWatching) return;
                    if (watched.size() <= MOST_WATCHED) request.put("allocations", new ArrayList<>(watched.keySet()));
                    watching = new Watching(request);
                }
                try {
                    watching.run(event -> {
                        Map<String, Object> change = object(event.get("change"));
                        Lease lease = watched.get(named(object(change.get("allocation"))));
                        if (lease != null) setDue(lease, now());
                    });
                    position = watching.position();
                } catch (RuntimeException e) { // refused, perhaps because the servers forgot its position
                    position = Map.of();
                    sleep(10_000);
                }
            }
        }
    }

    // Watches.

    /**
     * A watch of allocations, a message quorate.v1.WatchEventsRequest. run reports every change, a message
     * quorate.v1.WatchEventsResponse without heartbeats, in order, until stop is called in any thread. If a server
     * fails, it continues at the next one. Throws CallException if a server refuses it, with the code out_of_range if
     * the position is forgotten, and Unavailable if no server answers for 30 seconds.
     */
    public final class Watching {
        private final Map<String, Object> from;
        private volatile DataInputStream open;
        private volatile boolean isStopped;
        private volatile long heard;
        private String sent;

        /** A watch after the position in the request. */
        public Watching(Map<String, Object> request) { from = new LinkedHashMap<>(request); }

        /** Ends the watch. */
        public void stop() {
            isStopped = true;
            closeStream();
        }

        private void closeStream() {
            try {
                if (open != null) open.close();
            } catch (IOException ignored) {
                // it is given up
            }
        }

        private Map<String, Object> position() {
            Map<String, Object> position = new HashMap<>(from);
            position.keySet().retainAll(Set.of("afterIndex", "afterNumber"));
            return position;
        }

        /** True while a server sends changes. */
        public boolean isOpen() { return open != null; }

        /** Reads until stop is called. */
        public void run(Consumer<Map<String, Object>> report) {
            heard = now();
            Pauses pauses = new Pauses();
            while (!isStopped) {
                int index = current.get();
                long before = heard;
                CallException failure = new CallException("unavailable", "the stream has ended", List.of(), false, true,
                    null);
                try {
                    read(index, report);
                } catch (CallException e) {
                    if (!isStopped && isFinal(e)) throw e;
                    failure = e;
                } catch (IOException e) {
                    failure = networkFailure(index, e);
                } finally {
                    closeStream();
                    open = null;
                    advance(index);
                }
                if (isStopped) return;
                if (now() - heard > PATIENCE.toNanos()) throw new Unavailable(failure);
                if (heard != before) pauses = new Pauses();
                sleep(pauses.next(failure));
            }
        }

        /** True if a server refused to go on, and not because the caller was too slow or its token was replaced. */
        private boolean isFinal(CallException e) {
            if (e.isRefusalOfCaller()) return Objects.equals(sent, token());
            return e.isAnswer && !e.isTransient() && !e.code.equals("resource_exhausted");
        }

        private void read(int index, Consumer<Map<String, Object>> report) throws IOException {
            byte[] message = Json.write(from).getBytes(StandardCharsets.UTF_8);
            ByteBuffer envelope = ByteBuffer.allocate(5 + message.length);
            envelope.put((byte) 0).putInt(message.length).put(message);
            sent = token();
            HttpRequest request = request(index, "EventService/WatchEvents", "application/connect+json", sent)
                .timeout(SILENCE).POST(HttpRequest.BodyPublishers.ofByteArray(envelope.array())).build();
            HttpResponse<java.io.InputStream> response;
            try {
                response = http.send(request, HttpResponse.BodyHandlers.ofInputStream());
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new CancellationException("interrupted");
            }
            if (response.statusCode() != 200) {
                parse(response, new String(response.body().readNBytes(1 << 20), StandardCharsets.UTF_8));
            }
            DataInputStream in = open = new DataInputStream(response.body());
            while (!isStopped) {
                ScheduledFuture<?> silence = timers.schedule(this::closeStream, SILENCE.toMillis(),
                    TimeUnit.MILLISECONDS);
                int flags = in.readUnsignedByte(), size = in.readInt();
                if (size < 0 || size > MOST_BYTES) throw new EOFException("a message is too large");
                byte[] content = new byte[size];
                in.readFully(content);
                silence.cancel(false);
                Map<String, Object> said = object(Json.read(new String(content, StandardCharsets.UTF_8)));
                if ((flags & 2) != 0) {
                    if (said.containsKey("error")) throw errorOf(object(said.get("error")));
                    return;
                }
                heard = now();
                if (said.keySet().stream().anyMatch(CHANGES::contains)) report.accept(said);
                from.put("afterIndex", said.getOrDefault("index", "0"));
                from.put("afterNumber", said.getOrDefault("number", 0));
            }
        }
    }

    // Messages.

    /** The object that a field has; empty if it is not set. */
    @SuppressWarnings("unchecked")
    public static Map<String, Object> object(Object value) {
        return value instanceof Map<?, ?> m ? (Map<String, Object>) m : Map.of();
    }

    /** The list that a field has; empty if it is not set. */
    @SuppressWarnings("unchecked")
    public static List<Object> list(Object value) { return value instanceof List<?> l ? (List<Object>) l : List.of(); }

    /** The integer that a field has; 0 if it is not set. */
    public static long number(Object value) {
        if (value == null) return 0;
        return value instanceof Number n ? n.longValue() : Long.parseLong(value.toString());
    }

    /** JSON as maps, lists, strings, longs, doubles, booleans and null. */
    public static final class Json {
        private final String text;
        private int at, depth;

        private Json(String text) { this.text = text; }

        /** Writes a value. */
        public static String write(Object value) {
            StringBuilder out = new StringBuilder();
            write(value, out);
            return out.toString();
        }

        private static void write(Object value, StringBuilder out) {
            if (value instanceof Map<?, ?> map) {
                String before = "{";
                for (Map.Entry<?, ?> e : map.entrySet()) {
                    write(e.getKey().toString(), out.append(before));
                    write(e.getValue(), out.append(':'));
                    before = ",";
                }
                out.append(map.isEmpty() ? "{}" : "}");
            } else if (value instanceof Collection<?> items) {
                String before = "[";
                for (Object item : items) {
                    write(item, out.append(before));
                    before = ",";
                }
                out.append(items.isEmpty() ? "[]" : "]");
            } else if (value instanceof String s) {
                out.append('"');
                s.chars().forEach(c -> out.append(c == '"' || c == '\\' || c < ' ' ? String.format("\\u%04x", c)
                    : (char) c + ""));
                out.append('"');
            } else if (value == null || value instanceof Number || value instanceof Boolean) {
                out.append(value);
            } else {
                throw new IllegalArgumentException("JSON has no " + value.getClass().getName());
            }
        }

        /** Reads a value. Throws IllegalArgumentException for anything else. */
        public static Object read(String text) {
            Json json = new Json(text);
            Object value = json.value();
            json.space();
            if (json.at < text.length()) throw json.wrong();
            return value;
        }

        private IllegalArgumentException wrong() { return new IllegalArgumentException("not JSON at character " + at); }

        private char space() {
            while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) at++;
            return at < text.length() ? text.charAt(at) : 0;
        }

        private Object value() {
            if (depth++ > 100) throw wrong();
            char c = space();
            Object value = c == '{' ? members() : c == '[' ? items() : c == '"' ? string() : word();
            depth--;
            return value;
        }

        private Map<String, Object> members() {
            Map<String, Object> map = new LinkedHashMap<>();
            at++;
            for (boolean isFirst = true; space() != '}'; isFirst = false) {
                if (!isFirst) expect(',');
                if (space() != '"') throw wrong();
                String key = string();
                expect(':');
                map.put(key, value());
            }
            at++;
            return map;
        }

        private List<Object> items() {
            List<Object> list = new ArrayList<>();
            at++;
            for (boolean isFirst = true; space() != ']'; isFirst = false) {
                if (!isFirst) expect(',');
                list.add(value());
            }
            at++;
            return list;
        }

        private void expect(char c) {
            if (space() != c) throw wrong();
            at++;
        }

        private String string() {
            StringBuilder out = new StringBuilder();
            for (at++; at < text.length() && text.charAt(at) != '"'; at++) {
                char c = text.charAt(at);
                if (c != '\\') {
                    out.append(c);
                    continue;
                }
                if (++at >= text.length()) throw wrong();
                int escape = "bfnrt\"\\/".indexOf(text.charAt(at));
                if (escape >= 0) {
                    out.append("\b\f\n\r\t\"\\/".charAt(escape));
                } else if (text.charAt(at) == 'u' && at + 4 < text.length()) {
                    out.append((char) Integer.parseInt(text.substring(at + 1, at + 5), 16));
                    at += 4;
                } else {
                    throw wrong();
                }
            }
            if (at++ >= text.length()) throw wrong();
            return out.toString();
        }

        private Object word() {
            int from = at;
            while (at < text.length() && ",]} \t\r\n".indexOf(text.charAt(at)) < 0) at++;
            String word = text.substring(from, at);
            return switch (word) {
                case "true" -> true;
                case "false" -> false;
                case "null" -> null;
                default -> {
                    try {
                        yield word.matches("-?\\d{1,18}") ? (Object) Long.parseLong(word)
                            : (Object) Double.parseDouble(word);
                    } catch (NumberFormatException e) {
                        throw wrong();
                    }
                }
            };
        }
    }

    /**
     * Acquires a lease, works while it is held, and says why if it is denied. The arguments are the servers,
     * TREE:NODE and RESOURCE=AMOUNT. The exit status is 0 after the work, 3 if the request was denied, and 7 if the
     * lease was lost.
     */
    public static void main(String[] args) throws InterruptedException {
        String[] place = args[1].split(":", 2), amount = args[2].split("=", 2);
        Quorate client = new Quorate(List.of(args[0].split(",")));
        Map<String, Object> claim = Map.of("tree", place[0], "node", place[1], "amounts",
            Map.of(amount[0], Long.valueOf(amount[1])));
        // The lease is renewed in the background, and ends by itself if this process dies. Leave the mode out to wait.
        Map<String, Object> request = Map.of("claims", List.of(claim), "ttlMs", 30_000, "mode", "MODE_REJECT");
        try (Lease lease = client.acquire(request, new Options())) {
            System.out.println("granted " + lease.id + " with fence " + lease.fence);
            for (int i = 0; i < 3; i++) {
                lease.check(); // throws Lost from the safe moment on
                Thread.sleep(100); // the work
            }
        } catch (Denied denial) {
            System.out.println("denied: " + denial.decision().get("explanation"));
            for (Object violation : list(denial.decision().get("violations"))) {
                Map<String, Object> v = object(violation);
                System.out.printf("  %s:%s %s: limit %d, used %d, requested %d, missing %d%n", v.get("tree"),
                    v.getOrDefault("node", ""), v.get("resource"), number(v.get("limit")), number(v.get("used")),
                    number(v.get("requested")), number(v.get("missing")));
            }
            System.exit(3);
        } catch (Lost lost) {
            System.out.println(lost.getMessage());
            System.exit(7);
        }
        System.out.println("released");
    }
}
