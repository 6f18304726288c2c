import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import example.GoogleRpcStatus;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import quorate.v1.AllocateRequest;
import quorate.v1.AllocateResponse;
import quorate.v1.Allocation;
import quorate.v1.AllocationServiceGrpc;
import quorate.v1.AllocationServiceGrpc.AllocationServiceBlockingStub;
import quorate.v1.AllocationState;
import quorate.v1.Claim;
import quorate.v1.Decision;
import quorate.v1.ListAllocationsRequest;
import quorate.v1.ListAllocationsResponse;
import quorate.v1.Mode;
import quorate.v1.Problem;
import quorate.v1.ReleaseRequest;
import quorate.v1.RenewRequest;
import quorate.v1.RenewResponse;
import quorate.v1.Violation;

/**
 * Allocates, is denied, waits in the queue, renews and releases over gRPC: Queue HOST:PORT TREE NODE. README.md says
 * how the classes that it imports are generated. It needs grpc-java 1.41 and protobuf-java 3.21 or later.
 */
final class Queue {
    private static final Metadata.Key<byte[]> DETAILS =
        Metadata.Key.of("grpc-status-details-bin", Metadata.BINARY_BYTE_MARSHALLER);

    private final AllocationServiceBlockingStub allocations;
    private final String tree;
    private final String node;

    private Queue(AllocationServiceBlockingStub allocations, String tree, String node) {
        this.allocations = allocations;
        this.tree = tree;
        this.node = node;
    }

    public static void main(String[] args) throws Exception {
        ManagedChannel channel = ManagedChannelBuilder.forTarget(args[0]).usePlaintext().build();
        try {
            new Queue(AllocationServiceGrpc.newBlockingStub(channel), args[1], args[2]).run();
        } finally {
            channel.shutdownNow().awaitTermination(10, TimeUnit.SECONDS);
        }
    }

    private void run() throws Exception {
        AllocateResponse first = allocate("java-1", 6, Mode.MODE_REJECT, 0);
        System.out.println("granted " + first.getAllocation().getId());
        try {
            allocate("java-2", 6, Mode.MODE_REJECT, 0);
            throw new IllegalStateException("java-2 was granted");
        } catch (StatusRuntimeException e) {
            print(detail(e, Decision.class));
        }

        AllocateResponse second = allocate("java-2", 6, Mode.MODE_WAIT, 0);
        System.out.println("waits at position " + second.getAllocation().getWaiting().getPosition());

        RenewResponse renewed = call(stub -> stub.renew(
            RenewRequest.newBuilder().setId("java-1").setFence(first.getAllocation().getFence()).build()));
        long remaining = renewed.getAllocation().getExpiresLedgerMs() - renewed.getWrite().getLedgerTimeMs();
        System.out.println("renewed for " + remaining / 1000 + " s");

        release("java-1", first.getAllocation().getFence());
        System.out.println("released java-1");
        while (second.getAllocation().getState() == AllocationState.ALLOCATION_STATE_WAITING) {
            second = allocate("java-2", 6, Mode.MODE_WAIT, 5_000); // each call keeps its place in the queue
        }
        if (second.getAllocation().getState() != AllocationState.ALLOCATION_STATE_HELD
            || second.getAllocation().getFence() <= first.getAllocation().getFence()) {
            throw new IllegalStateException("java-2 left the queue, or has an old fence: " + second.getAllocation());
        }
        System.out.println("granted java-2");

        AllocateResponse third = allocate("java-3", 1, Mode.MODE_REJECT, 0);
        System.out.println("granted java-3");
        try {
            // The fence of another grant: a late call must not end this one.
            release("java-3", second.getAllocation().getFence());
            throw new IllegalStateException("java-3 was released");
        } catch (StatusRuntimeException e) {
            System.out.println("refused: " + detail(e, Problem.class).getReason());
        }
        list();
        release("java-2", second.getAllocation().getFence());
        release("java-3", third.getAllocation().getFence());
        System.out.println("released java-2 java-3");
    }

    private static void print(Decision denied) {
        System.out.println("denied: " + (denied.getNeverFits() ? "it can never fit" : "it may fit later"));
        for (Violation v : denied.getViolationsList()) {
            System.out.printf("  %s:%s %s: limit %d, used %d, requested %d%n", v.getTree(), v.getNode(),
                v.getResource(), v.getLimit(), v.getUsed(), v.getRequested());
        }
    }

    private AllocateResponse allocate(String id, long cores, Mode mode, long pollMs) throws InterruptedException {
        Claim claim = Claim.newBuilder().setTree(tree).setNode(node).putAmounts("cores", cores).build();
        AllocateRequest request = AllocateRequest.newBuilder().setId(id).addClaims(claim).setTtlMs(60_000).setMode(mode)
            .setPollMs(pollMs).build();
        return call(stub -> stub.allocate(request));
    }

    private void release(String id, long fence) throws InterruptedException {
        call(stub -> stub.release(ReleaseRequest.newBuilder().setId(id).setFence(fence).build()));
    }

    private void list() throws InterruptedException {
        String token = "";
        int pages = 0;
        do {
            ListAllocationsRequest request = ListAllocationsRequest.newBuilder().setTree(tree).setIdPrefix("java-")
                .setPageSize(1).setPageToken(token).build();
            ListAllocationsResponse page = call(stub -> stub.listAllocations(request));
            token = page.getNextPageToken();
            pages++;
            for (Allocation a : page.getAllocationsList()) {
                System.out.println("page " + pages + ": " + a.getId() + " " + a.getState());
            }
        } while (!token.isEmpty());
    }

    /** Calls until a server answers. All requests here have ids, so a repetition is never counted twice. */
    private <T> T call(Function<AllocationServiceBlockingStub, T> method) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (true) {
            try {
                return method.apply(allocations.withDeadlineAfter(15, TimeUnit.SECONDS));
            } catch (StatusRuntimeException e) {
                Status.Code code = e.getStatus().getCode();
                boolean isTransient = code == Status.Code.UNAVAILABLE || code == Status.Code.DEADLINE_EXCEEDED;
                if (!isTransient || System.nanoTime() - end > 0) throw e;
            }
            Thread.sleep(200);
        }
    }

    /** Returns the Decision of a denial, or the Problem of any other error; throws the error if it has none. */
    private static <T extends com.google.protobuf.Message> T detail(StatusRuntimeException e, Class<T> type)
            throws InvalidProtocolBufferException {
        byte[] encoded = e.getTrailers() == null ? null : e.getTrailers().get(DETAILS);
        if (encoded == null) throw e;
        for (Any detail : GoogleRpcStatus.Status.parseFrom(encoded).getDetailsList()) {
            if (detail.is(type)) return detail.unpack(type);
        }
        throw e;
    }
}
