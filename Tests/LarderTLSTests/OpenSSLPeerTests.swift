import Foundation
import LarderTime
import TestSupport
import Testing

@testable import LarderTLS

/// The session against the programs of OpenSSL, over sockets. Skipped where the command `openssl` is not installed.
@Suite(
    "TLS: peers of OpenSSL",
    .oneMinute,
    .enabled(if: OpenSSLCommand.isInstalled, "the command openssl is not installed")
)
struct OpenSSLPeerTests {
    private let scratch: ScratchDirectory
    private let authority: TLSAuthority
    private let now = SystemWallClock().now

    init() throws {
        scratch = try ScratchDirectory()
        authority = try TLSAuthority(name: "Test Authority", now: now)
        try write("ca.pem", authority.certificate.pem)
        let identity = try authority.issue(hosts: ["localhost", "127.0.0.1"], now: now)
        try write("chain.pem", identity.chainPEM)
        try write("key.pem", identity.keyPEM)
    }

    private func write(_ name: String, _ text: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: path(name)))
    }

    private func path(_ name: String) -> String { scratch.path + "/" + name }

    @Test func `openssl verifies the authority and its certificate strictly`() async throws {
        let result = try await OpenSSLCommand.run([
            "verify", "-x509_strict", "-CAfile", path("ca.pem"), "-purpose", "sslserver", "-verify_hostname",
            "localhost",
            path("chain.pem"),
        ])
        #expect(result.contains("chain.pem: OK"), "\(result)")
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"]) func `the client speaks to s_server`(_ version: String) async throws {
        let server = try OpenSSLCommand([
            "s_server", "-accept", "0", "-cert", path("chain.pem"), "-cert_chain", path("chain.pem"), "-key",
            path("key.pem"), "-rev", version,
        ])
        defer { server.stop() }
        try await onOwnThread { [authority, now] in
            let port = try server.port()
            var settings = TLSSettings()
            settings.roots = .only(Array(authority.certificate.pem.utf8))
            let socket = try TLSSocket(
                LoopbackSocket.connected(to: port),
                TLSClient(settings).session(host: "localhost", port: port, now: now)
            )
            defer { socket.shut() }
            try socket.shakeHands()
            try socket.send(Array("desserts\n".utf8))
            #expect(String(decoding: try socket.receive(count: 9), as: UTF8.self) == "stressed\n")
            #expect(socket.session.version == (version == "-tls1_2" ? "TLSv1.2" : "TLSv1.3"))
        }
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"]) func `the server speaks to s_client`(_ version: String) async throws {
        let (listener, port) = try LoopbackSocket.bound(backlog: 4)
        defer { close(listener) }
        let client = try OpenSSLCommand(
            [
                "s_client", "-connect", "127.0.0.1:\(port)", "-CAfile", path("ca.pem"), "-verify_return_error",
                "-servername",
                "localhost", "-verify_hostname", "localhost", "-alpn", "h2,http/1.1", "-quiet", "-no_ign_eof", version,
            ],
            input: "desserts\n"
        )
        defer { client.stop() }
        let (chain, key) = (path("chain.pem"), path("key.pem"))
        try await onOwnThread {
            let identity = try TLSIdentity(chain: readFile(chain), key: readFile(key), from: "the test")
            let server = try TLSServer { _ in identity }
            let socket = try TLSSocket(accept(listener, nil, nil), server.session())
            defer { socket.shut() }
            #expect(String(decoding: try socket.receive(count: 9), as: UTF8.self) == "desserts\n")
            #expect(socket.session.requestedHost == "localhost")
            #expect(socket.session.applicationProtocol == "http/1.1")
            try socket.send(Array("stressed\n".utf8))
            socket.session.end()
            try socket.flush()
            #expect(client.output().contains("stressed"))
        }
    }

    @Test func `s_client refuses each faulty certificate`() async throws {
        for fault in CertificateFault.allCases where fault != .wrongPurpose {
            let (listener, port) = try LoopbackSocket.bound(backlog: 4)
            defer { close(listener) }
            let client = try OpenSSLCommand([
                "s_client", "-connect", "127.0.0.1:\(port)", "-CAfile", path("ca.pem"), "-verify_return_error",
                "-servername",
                "localhost", "-verify_hostname", "localhost", "-quiet",
            ])
            defer { client.stop() }
            try await onOwnThread { [authority, now] in
                let identity = try authority.issue(hosts: ["localhost"], now: now, fault: fault)
                let socket = try TLSSocket(accept(listener, nil, nil), TLSServer { _ in identity }.session())
                defer { socket.shut() }
                let error = #expect(throws: TLSError.self) { try socket.receive(count: 1) }
                #expect(
                    error?.code == .rejectedByPeer || error?.code == .truncated,
                    "\(fault): \(error?.description ?? "")"
                )
            }
        }
    }

    private func onOwnThread(_ body: @escaping @Sendable () throws -> Void) async throws {
        try await Task(executorPreference: OwnThreads()) { try body() }.value
    }
}

/// A session over a socket that blocks.
private final class TLSSocket {
    let session: TLSSession
    private let descriptor: Int32
    private var plain: [UInt8] = []

    init(_ descriptor: Int32, _ session: TLSSession) {
        self.descriptor = descriptor
        self.session = session
    }

    func shut() { close(descriptor) }

    func shakeHands() throws {
        try session.start()
        while !session.isEstablished { try exchange() }
    }

    func send(_ bytes: [UInt8]) throws {
        try session.send(bytes.span)
        try flush()
    }

    func receive(count: Int) throws -> [UInt8] {
        while plain.count < count { try exchange() }
        defer { plain.removeFirst(count) }
        return Array(plain.prefix(count))
    }

    func flush() throws {
        let bytes = session.takeOutput()
        var start = 0
        while start < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { raw in
                unsafe Glibc.send(
                    descriptor,
                    raw.baseAddress.map { unsafe $0 + start },
                    raw.count - start,
                    Int32(MSG_NOSIGNAL)
                )
            }
            guard count > 0 else { throw TLSError(.truncated, "the peer takes nothing") }
            start += count
        }
    }

    private func exchange() throws {
        try flush()
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = unsafe recv(descriptor, &buffer, buffer.count, 0)
        guard count > 0 else { throw session.errorAtEnd ?? TLSError(.truncated, "the peer has ended") }
        defer { try? flush() }
        try session.receive(buffer.span.extracting(0..<count), into: &plain)
    }
}

/// A running `openssl`.
///
/// `@unchecked Sendable`: its parts are not changed after `init`, and only one thread at a time reads what it prints.
private struct OpenSSLCommand: @unchecked Sendable {
    private let process = Process()
    private let printed = Pipe()

    /// - Parameter input: its standard input, which then ends.
    init(_ arguments: [String], input: String = "") throws {
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["openssl"] + arguments
        process.standardOutput = printed
        process.standardError = FileHandle.nullDevice
        let given = Pipe()
        process.standardInput = given
        try process.run()
        given.fileHandleForWriting.write(Data(input.utf8))
        if !input.isEmpty { return }
        // A server would end with its input.
        held = given
    }

    private var held: Pipe?

    static let isInstalled: Bool = {
        let paths = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
        return paths.contains { FileManager.default.isExecutableFile(atPath: "\($0)/openssl") }
    }()

    static func run(_ arguments: [String]) async throws -> String {
        try await Task(executorPreference: OwnThreads()) { try OpenSSLCommand(arguments).output() }.value
    }

    /// All that it prints until it ends.
    func output() -> String { String(decoding: printed.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self) }

    /// The port of a server, from its line "ACCEPT 0.0.0.0:4433".
    func port() throws -> Int {
        var text = ""
        while true {
            let data = printed.fileHandleForReading.availableData
            guard !data.isEmpty else { throw TLSError(.unavailable, "openssl ended: \(text)") }
            text += String(decoding: data, as: UTF8.self)
            for line in text.split(separator: "\n").dropLast(text.hasSuffix("\n") ? 0 : 1)
            where line.hasPrefix("ACCEPT") {
                if let port = line.split(separator: ":").last.flatMap({ Int($0) }) { return port }
            }
        }
    }

    /// Ends it with a signal that a child cannot have blocked: it inherits the mask of the thread that starts it.
    func stop() { kill(process.processIdentifier, SIGKILL) }
}
