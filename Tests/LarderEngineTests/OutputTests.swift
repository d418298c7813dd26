import Glibc
import TestSupport
import Testing

@testable import LarderEngine

@Suite("Output", .oneMinute)
struct OutputTests {
    @Test func `sent bytes are released although the output is never empty`() throws {
        var ends: [Int32] = [0, 0]
        let kind = Int32(SOCK_STREAM.rawValue)
        try #require(unsafe socketpair(AF_UNIX, kind, 0, &ends) == 0)
        defer { for end in ends { close(end) } }
        for end in ends { SystemCall.configure(end) }
        var output = Output()
        let event = [UInt8](repeating: 0x61, count: 4_096)
        var appended = 0
        var received = 0
        var chunk = [UInt8](repeating: 0, count: 4_096)
        var heldMaximum = 0
        for _ in 0..<20_000 {
            // More than the reader takes in a round, so that the output is never empty.
            repeat {
                output.append(event)
                appended += event.count
                if case .failed = output.flush(to: ends[0]) { Issue.record("the socket failed") }
            } while output.waitingBytes < 64 << 10
            received += max(0, unsafe recv(ends[1], &chunk, chunk.count, 0))
            heldMaximum = max(heldMaximum, output.heldBytes)
        }
        #expect(heldMaximum < 1 << 20)
        // No byte was lost.
        while !output.isEmpty || received < appended {
            if case .failed = output.flush(to: ends[0]) { break }
            let count = unsafe recv(ends[1], &chunk, chunk.count, 0)
            guard count > 0 else { break }
            received += count
        }
        #expect(received == appended)
    }
}
