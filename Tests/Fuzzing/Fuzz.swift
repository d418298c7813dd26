import Glibc

/// The parsers of foreign bytes, by the names that `make fuzz TARGET=...` takes.
///
/// A target returns for every input: errors that a parser states are expected. A trap, a report of the address sanitizer, a timeout, too
/// much memory, or a property that does not hold ends the process, and libFuzzer stores the input.
let targets: [String: @Sendable ([UInt8]) throws -> Void] = [
    "http-request": fuzzRequest, "http-response": fuzzResponse, "chunked": fuzzChunked, "websocket": fuzzWebSocket,
    "handshake": fuzzHandshake, "events": fuzzEvents, "json": fuzzJSON, "inflate": fuzzInflate, "deflate": fuzzDeflate,
    "content": fuzzContent, "url": fuzzURL, "fields": fuzzFields, "dates": fuzzDates, "tokens": fuzzTokens,
    "png": fuzzPNG, "jpeg": fuzzJPEG, "control": fuzzControl, "recording": fuzzRecording, "fixtures": fuzzFixtures,
    "rows": fuzzRows, "database": fuzzDatabase, "tls": fuzzTLS,
]

/// The chosen target, from the environment: libFuzzer takes the arguments.
let chosen: @Sendable ([UInt8]) throws -> Void = {
    let name = unsafe getenv("LARDER_FUZZ_TARGET").map { unsafe String(cString: $0) } ?? ""
    guard let target = targets[name] else {
        fail("LARDER_FUZZ_TARGET is '\(name)'. It must be one of \(targets.keys.sorted().joined(separator: ", ")).")
    }
    return target
}()

@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: count))
    do { try chosen(bytes) } catch { fail("The target threw \(error).") }
    return 0
}

/// Ends the process with a message, so that the input is stored.
func fail(_ message: String) -> Never {
    var text = "Finding: \(message)\n"
    text.withUTF8 { text in _ = unsafe write(2, text.baseAddress, text.count) }
    abort()
}

/// Ends the process unless a property holds.
func require(_ holds: Bool, _ property: @autoclosure () -> String) {
    if !holds { fail(property()) }
}

/// Ends the process unless the results of two ways are equal.
func requireEqual<Value: Equatable>(_ left: Value, _ right: Value, _ property: @autoclosure () -> String) {
    if left != right { fail("\(property())\n    \(left)\n    \(right)") }
}

/// Cuts bytes into pieces: single bytes for short inputs, otherwise pieces of a length that depends on the input's.
func pieces(_ bytes: [UInt8]) -> [ArraySlice<UInt8>] {
    let length = bytes.count <= 256 ? 1 : bytes.count % 61 + 2
    return stride(from: 0, to: bytes.count, by: length).map { bytes[$0..<min(bytes.count, $0 + length)] }
}

/// The bytes as text; ISO 8859-1 where they are not UTF-8.
func text(_ bytes: [UInt8]) -> String {
    String(validating: bytes, as: UTF8.self) ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
}
