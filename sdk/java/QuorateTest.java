import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.*;
import java.util.function.BiFunction;

/** Tests of Quorate.java without a server of Quorate: java -ea QuorateTest. Ends with an error if one fails. */
public final class QuorateTest {
    public static void main(String[] args) throws Exception {
        boolean isEnabled = false;
        assert isEnabled = true;
        if (!isEnabled) {
            throw new AssertionError("run with -ea");
        }
        jsonSurvivesBothWays();
        wrongJsonIsRefused();
        amounts();
        callsFailOverAndKeepTheirId();
        overloadedServersAreGivenTheirTime();
        tokensAreMadeOnce();
        aReplacedTokenIsUsedAtOnce();
        theSafeMomentComesAlthoughARenewalHangs();
        theTimeOfASuspendedMachineCounts();
        tokensDoNotLeaveInPlainText();
        System.exit(0);
    }

    static void jsonSurvivesBothWays() {
        String text = "{\"a\":[1,-2,9007199254740993,0.5,true,false,null,\"\\u0022\\u005c\\u000aé😀\"],"
            + "\"b\":{},\"c\":[]}";
        check(text, Quorate.Json.write(Quorate.Json.read(text)));
        check(List.of("\b\f\n\r\t\"\\/\u00e9"), Quorate.Json.read(" [ \"\\b\\f\\n\\r\\t\\\"\\\\\\/\\u00e9\" ] "));
        check(12L, Quorate.number("12"));
        check(0L, Quorate.number(null));
    }

    static void wrongJsonIsRefused() {
        for (String wrong : List.of("", "{", "[1", "[1,]", "{\"a\"}", "{\"a\":1,}", "\"a", "\"\\x\"", "nul", "1 2",
            "{a:1}", "[".repeat(200))) {
            try {
                Quorate.Json.read(wrong);
            } catch (IllegalArgumentException e) {
                continue;
            }
            throw new AssertionError(wrong + " is read");
        }
    }

    /** Plays the table that the command line, the dashboard and the other clients play. */
    static void amounts() throws IOException {
        Path table = Path.of("..", "..", "client", "quantity", "testdata", "quantities.json");
        List<?> rows = (List<?>) Quorate.Json.read(Files.readString(table));
        assert rows.size() > 80 : rows.size();
        for (Object each : rows) {
            Map<String, Object> row = Quorate.object(each);
            String text = (String) row.get("text");
            try {
                long read = switch ((String) row.get("unit")) {
                    case "bytes" -> Quorate.inBytes(text);
                    case "milli" -> Quorate.inMilli(text);
                    default -> Quorate.inCount(text);
                };
                check(row.get("amount"), Long.toString(read));
            } catch (IllegalArgumentException e) {
                assert row.containsKey("refused") : row + " is refused: " + e.getMessage();
            }
        }
    }

    static void callsFailOverAndKeepTheirId() throws IOException {
        Fake first = new Fake((m, r) -> problem("NO_LEADER", true, ""));
        Fake second = new Fake((m, r) -> "{\"allocation\":{\"id\":\"" + r.getOrDefault("id", "") + "\"}}");
        Quorate client = new Quorate(List.of(first.url, second.url));
        client.call("AllocationService/Allocate", Map.of());
        check(1, first.asked.size());
        check(first.asked.get(0).get("id"), second.asked.get(0).get("id"));
        check(36, ((String) first.asked.get(0).get("id")).length());
        client.call("TreeService/SetLimits", Map.of("tree", "t"));
        check(1, first.asked.size());
        check(36, ((String) second.asked.get(1).get("requestId")).length());
    }

    static void overloadedServersAreGivenTheirTime() throws IOException {
        Fake server = new Fake((m, r) -> null);
        server.answer = (m, r) -> server.asked.size() == 1 ? problem("OVERLOADED", true, "0.400s") : "{}";
        long began = System.nanoTime();
        new Quorate(List.of(server.url)).call("AllocationService/Release", Map.of("id", "x"));
        assert System.nanoTime() - began >= 400_000_000 : "too early";
    }

    static void tokensAreMadeOnce() throws IOException {
        Fake server = new Fake((m, r) -> problem("NO_LEADER", false, ""));
        try {
            new Quorate(List.of(server.url)).call("admin.v1.AccessService/CreateToken", Map.of(), Duration.ofSeconds(1));
        } catch (Quorate.CallException e) {
            assert e.mayBeDone() : e;
        }
        check(1, server.asked.size());
    }

    static void aReplacedTokenIsUsedAtOnce() throws IOException {
        String refused = "{\"code\":\"unauthenticated\",\"message\":\"refused\"}";
        String[] token = {"old"};
        Fake server = new Fake((m, r) -> null);
        server.answer = (m, r) -> {
            if (!token[0].equals("new")) {
                token[0] = "new"; // its source replaces it while the call is under way
                return refused;
            }
            return m.equals("GetStatus") ? refused : "{}";
        };
        Quorate client = new Quorate(List.of(server.url), () -> token[0], null);
        client.call("AllocationService/Release", Map.of("id", "x"));
        check(List.of("Bearer old", "Bearer new"), server.tokens);
        try {
            client.call("admin.v1.ClusterService/GetStatus", Map.of());
            throw new AssertionError("it is answered");
        } catch (Quorate.CallException e) {
            check("unauthenticated", e.code);
        }
        check(3, server.asked.size());
    }

    static void theTimeOfASuspendedMachineCounts() throws Exception {
        Fake server = new Fake((method, r) ->
            "{\"allocation\":{\"id\":\"x\",\"fence\":\"7\",\"ttlMs\":\"600000\",\"expiresLedgerMs\":\"601000\",\"state\":\"HELD\"},"
                + "\"write\":{\"ledgerTimeMs\":\"1000\"}}");
        Quorate.Lease lease = new Quorate(List.of(server.url)).acquire(Map.of("id", "x"), new Quorate.Options());
        long left = lease.endsIn().toSeconds();
        assert left > 500 : left;
        if (Quorate.Suspension.uptime == null) return; // it is not known on this system
        var uptime = Quorate.Suspension.uptime;
        Quorate.Suspension.uptime = () -> Double.parseDouble(uptime.get().split(" ")[0]) + 3600 + " 0";
        assert lease.await(Duration.ofMinutes(1)) : "it is not lost";
        check("unrenewed", lease.lost().how);
        Quorate.Suspension.uptime = uptime;
    }

    static void theSafeMomentComesAlthoughARenewalHangs() throws Exception {
        Fake server = new Fake((method, r) -> {
            if (method.equals("BatchRenew")) {
                pause(5000);
            }
            return "{\"allocation\":{\"id\":\"x\",\"fence\":\"7\",\"ttlMs\":\"1500\",\"expiresLedgerMs\":\"2500\",\"state\":\"HELD\"},"
                + "\"write\":{\"ledgerTimeMs\":\"1000\"}}";
        });
        List<Long> told = Collections.synchronizedList(new ArrayList<>());
        Quorate.Options options = new Quorate.Options();
        Quorate.Lease[] lease = new Quorate.Lease[1];
        options.onLost = lost -> told.add(lease[0].endsIn().toMillis());
        long sent = System.nanoTime();
        lease[0] = new Quorate(List.of(server.url)).acquire(Map.of("id", "x"), options);
        assert lease[0].await(Duration.ofSeconds(4)) : "it is not lost";
        assert System.nanoTime() - sent < 3_000_000_000L : "it is lost too late";
        check("unrenewed", lease[0].lost().how);
        pause(100);
        assert told.size() == 1 && told.get(0) > 0 : told;
        try {
            lease[0].check();
            throw new AssertionError("check passes");
        } catch (Quorate.Lost e) {
            check("x", e.id);
        }
    }

    static void tokensDoNotLeaveInPlainText() {
        new Quorate(List.of("http://127.0.0.1:1", "https://10.0.0.1"), () -> "t", null);
        for (String address : List.of("http://10.0.0.1:7101", "ftp://a", "http://")) {
            try {
                new Quorate(List.of(address), () -> "t", null);
            } catch (IllegalArgumentException e) {
                continue;
            }
            throw new AssertionError(address + " is accepted");
        }
    }

    static void check(Object want, Object got) {
        if (!want.equals(got)) {
            throw new AssertionError("got " + got + ", want " + want);
        }
    }

    static void pause(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static String problem(String reason, boolean notApplied, String delay) {
        Map<String, Object> said = Map.of("type", "quorate.v1.Problem", "debug",
            Map.of("reason", reason, "notApplied", notApplied));
        Map<String, Object> hint = Map.of("type", "google.rpc.RetryInfo", "debug", delay.isEmpty() ? Map.of()
            : Map.of("retryDelay", delay));
        return Quorate.Json.write(Map.of("code", "unavailable", "message", reason, "details", List.of(said, hint)));
    }

    /** A server whose answers a test writes: a text with a code is an error. */
    static final class Fake {
        final List<Map<String, Object>> asked = Collections.synchronizedList(new ArrayList<>());
        final List<String> tokens = Collections.synchronizedList(new ArrayList<>());
        final String url;
        BiFunction<String, Map<String, Object>, String> answer;

        Fake(BiFunction<String, Map<String, Object>, String> answer) throws IOException {
            this.answer = answer;
            HttpServer http = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
            http.setExecutor(java.util.concurrent.Executors.newCachedThreadPool());
            http.createContext("/", this::handle);
            http.start();
            url = "http://127.0.0.1:" + http.getAddress().getPort();
        }

        private void handle(HttpExchange exchange) throws IOException {
            Map<String, Object> request = Quorate.object(Quorate.Json.read(
                new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8)));
            asked.add(request);
            tokens.add(Objects.toString(exchange.getRequestHeaders().getFirst("Authorization")));
            String path = exchange.getRequestURI().getPath();
            byte[] body = answer.apply(path.substring(path.lastIndexOf('/') + 1),
                request).getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(new String(body, StandardCharsets.UTF_8).contains("\"code\"") ? 503 : 200,
                body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        }
    }
}
