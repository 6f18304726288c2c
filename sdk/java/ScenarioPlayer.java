import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.*;

/** Plays the scenarios of sdk/scenarios with the Java client: reads a step a line, and writes its outcome. */
public final class ScenarioPlayer {
    private final Quorate client;
    private final Map<String, Quorate.Lease> leases = new ConcurrentHashMap<>();
    private final Map<String, Future<Map<String, Object>>> waiting = new ConcurrentHashMap<>();
    private final Map<String, Long> early = new ConcurrentHashMap<>();
    private final Map<String, BlockingQueue<Map<String, Object>>> changes = new ConcurrentHashMap<>();
    private final ExecutorService threads = Executors.newCachedThreadPool();

    private ScenarioPlayer(List<String> servers) {
        client = new Quorate(servers);
    }

    public static void main(String[] args) throws Exception {
        ScenarioPlayer player = new ScenarioPlayer(List.of(args[0].split(",")));
        BufferedReader steps = new BufferedReader(new InputStreamReader(System.in));
        for (String line = steps.readLine(); line != null; line = steps.readLine()) {
            Map<String, Object> outcome;
            try {
                outcome = player.play(Quorate.object(Quorate.Json.read(line)));
            } catch (Exception e) {
                outcome = Map.of("outcome", "error", "text", e.toString());
            }
            System.out.println(Quorate.Json.write(outcome));
        }
        System.exit(0);
    }

    private Map<String, Object> play(Map<String, Object> step) throws Exception {
        String name = String.valueOf(step.get("as"));
        Duration within = Duration.ofSeconds(Quorate.number(step.get("within")));
        switch ((String) step.get("do")) {
            case "acquire":
                if (step.get("background") != Boolean.TRUE) {
                    return acquire(name, step);
                }
                waiting.put(name, threads.submit(() -> acquire(name, step)));
                return Map.of("outcome", "started");
            case "await":
                return waiting.get(name).get(within.toMillis(), TimeUnit.MILLISECONDS);
            case "release":
                leases.remove(name).release();
                return Map.of("outcome", "released");
            case "await-loss":
                return awaitLoss(leases.get(name), within);
            case "await-revoked":
                return Map.of("outcome", leases.get(name).awaitRevoked(within) ? "revoked" : "held");
            case "state":
                Object record = client.call("AllocationService/GetAllocation",
                    Map.of("id", step.get("id"))).get("allocation");
                String state = (String) Quorate.object(record).get("state");
                return Map.of("outcome", "state", "state", state.replace("ALLOCATION_STATE_", "").toLowerCase());
            case "set-limit":
                Map<String, Object> limits = Map.of((String) step.get("resource"),
                    Map.of("amount", step.get("amount")));
                client.call("TreeService/SetLimits",
                    Map.of("tree", step.get("tree"), "node", step.get("node"), "limits", limits, "reason", "scenario"));
                return Map.of("outcome", "set");
            case "watch":
                return watch(name, Quorate.object(step.get("request")));
            case "next":
                return next(changes.get(name).poll(within.toMillis(), TimeUnit.MILLISECONDS));
            case "many":
                return many(step);
            default:
                return Map.of("outcome", "unsupported", "text", "the step " + step.get("do"));
        }
    }

    private Map<String, Object> acquire(String name, Map<String, Object> step) {
        Quorate.Options options = new Quorate.Options();
        if (step.containsKey("timeout")) {
            options.timeout = Duration.ofSeconds(Quorate.number(step.get("timeout")));
        }
        options.onLost = lost -> early.put(lost.id, leases.get(name).endsIn().toMillis());
        try {
            Quorate.Lease lease = client.acquire(Quorate.object(step.get("request")), options);
            leases.put(name, lease);
            return Map.of("outcome", "granted", "id", lease.id, "fence", lease.fence, "items", items(lease));
        } catch (Quorate.Denied e) {
            return Map.of("outcome", "denied", "neverFits", e.decision().getOrDefault("neverFits", false),
                "violations", e.decision().get("violations"));
        } catch (Quorate.TimedOut e) {
            return Map.of("outcome", "timed-out");
        } catch (Quorate.Unavailable e) {
            boolean mayBeDone = ((Quorate.CallException) e.getCause()).mayBeDone();
            return Map.of("outcome", "unavailable", "text", e.getMessage(), "mayBeDone", mayBeDone);
        } catch (Quorate.CallException e) {
            return Map.of("outcome", "failed", "code", e.code, "reason", e.problem().getOrDefault("reason", ""),
                "text", e.getMessage(), "mayBeDone", e.mayBeDone());
        }
    }

    private static List<Object> items(Quorate.Lease lease) {
        List<Object> names = new ArrayList<>();
        for (Object claim : Quorate.list(lease.allocation().get("claims"))) {
            for (Object item : Quorate.list(Quorate.object(claim).get("items"))) {
                names.add(Quorate.object(item).get("name"));
            }
        }
        return names;
    }

    private Map<String, Object> awaitLoss(Quorate.Lease lease, Duration within) throws InterruptedException {
        if (!lease.await(within)) {
            return Map.of("outcome", "held");
        }
        for (int i = 0; i < 100 && !early.containsKey(lease.id); i++) {
            Thread.sleep(10); // the callback comes after the end
        }
        Quorate.Lost lost = lease.lost();
        return Map.of("outcome", "lost", "how", lost.how, "earlyMs", early.get(lease.id), "text", lost.getMessage());
    }

    private Map<String, Object> watch(String name, Map<String, Object> request) throws InterruptedException {
        BlockingQueue<Map<String, Object>> seen = new LinkedBlockingQueue<>();
        changes.put(name, seen);
        Quorate.Watching watching = client.new Watching(request);
        threads.submit(() -> watching.run(seen::add));
        for (int i = 0; i < 1000 && !watching.isOpen(); i++) {
            Thread.sleep(10);
        }
        return Map.of("outcome", watching.isOpen() ? "watching" : "silent");
    }

    private static Map<String, Object> next(Map<String, Object> change) {
        if (change == null) {
            return Map.of("outcome", "silent");
        }
        change = Quorate.object(change.get("change"));
        String kind = ((String) change.get("kind")).replace("ALLOCATION_CHANGE_KIND_", "").toLowerCase();
        return Map.of("outcome", "change", "change", kind, "id", Quorate.object(change.get("allocation")).get("id"));
    }

    private Map<String, Object> many(Map<String, Object> step) throws Exception {
        List<Future<Map<String, Object>>> calls = new ArrayList<>();
        for (int i = 0; i < Quorate.number(step.get("count")); i++) {
            String name = "many-" + i;
            calls.add(threads.submit(() -> acquire(name, step)));
        }
        long granted = 0, denied = 0;
        for (Future<Map<String, Object>> call : calls) {
            Object outcome = call.get().get("outcome");
            granted += outcome.equals("granted") ? 1 : 0;
            denied += outcome.equals("denied") ? 1 : 0;
        }
        if (step.get("hold") != Boolean.TRUE) {
            leases.values().forEach(Quorate.Lease::release);
            leases.clear();
        }
        return Map.of("outcome", "done", "granted", granted, "denied", denied);
    }
}
