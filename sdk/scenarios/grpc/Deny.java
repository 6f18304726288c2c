import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.ClientCalls;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.concurrent.TimeUnit;

/** Asks for too much of 1, 3 and 8 resources through grpc-java, and prints what arrives of each denial; see deny.py. */
final class Deny {
    private static final Metadata.Key<byte[]> DETAILS =
        Metadata.Key.of("grpc-status-details-bin", Metadata.BINARY_BYTE_MARSHALLER);

    public static void main(String[] args) throws InterruptedException {
        String[] address = args[0].split(":");
        ManagedChannel channel =
            ManagedChannelBuilder.forAddress(address[0], Integer.parseInt(address[1])).usePlaintext().build();
        MethodDescriptor<byte[], byte[]> method = MethodDescriptor.newBuilder(new Bytes(), new Bytes())
            .setType(MethodDescriptor.MethodType.UNARY)
            .setFullMethodName("quorate.v1.AllocationService/Allocate").build();
        CallOptions options = CallOptions.DEFAULT.withDeadlineAfter(300, TimeUnit.SECONDS).withWaitForReady();
        for (int count : new int[] {1, 3, 8}) {
            StatusRuntimeException e = ask(() ->
                ClientCalls.blockingUnaryCall(channel, method, options, request("java-" + count, args[1], count)));
            byte[] details = e.getTrailers() == null ? null : e.getTrailers().get(DETAILS);
            System.out.println(e.getStatus().getCode() + " "
                + HexFormat.of().formatHex(details == null ? new byte[0] : details));
        }
        channel.shutdownNow().awaitTermination(10, TimeUnit.SECONDS);
    }

    /** Returns the error of a request, once the servers have a leader. */
    private static StatusRuntimeException ask(Runnable call) throws InterruptedException {
        for (int i = 0; i < 120; i++) {
            try {
                call.run();
                throw new IllegalStateException("granted");
            } catch (StatusRuntimeException e) {
                if (e.getStatus().getCode() != Status.Code.UNAVAILABLE) return e;
            }
            Thread.sleep(500);
        }
        throw new IllegalStateException("the servers find no leader");
    }

    private static byte[] request(String id, String node, int count) {
        byte[][] claim = new byte[2 + count][];
        claim[0] = field(1, text("deep"));
        claim[1] = field(2, text(node));
        for (int i = 0; i < count; i++) {
            claim[2 + i] = field(3, join(field(1, text("res" + i)), new byte[] {2 << 3, 5}));
        }
        return join(field(1, text(id)), field(3, join(claim)));
    }

    private static byte[] text(String s) {
        return s.getBytes(StandardCharsets.UTF_8);
    }

    private static byte[] field(int number, byte[] data) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        out.write(number << 3 | 2);
        int length = data.length;
        for (; length > 127; length >>= 7) {
            out.write(length & 127 | 128);
        }
        out.write(length);
        out.writeBytes(data);
        return out.toByteArray();
    }

    private static byte[] join(byte[]... parts) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            out.writeBytes(part);
        }
        return out.toByteArray();
    }

    private static final class Bytes implements MethodDescriptor.Marshaller<byte[]> {
        @Override
        public InputStream stream(byte[] value) {
            return new ByteArrayInputStream(value);
        }

        @Override
        public byte[] parse(InputStream stream) {
            try {
                return stream.readAllBytes();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }
}
