import LarderBackend
import LarderCoding
import LarderHTTP

extension FaultAction {
    /// Reads `{"type": "reset"}` and the like.
    static func read(_ reader: inout BodyReader) -> FaultAction? {
        defer { reader.finish() }
        guard let type = reader.string("type", length: 1...64) else {
            reader.failMissing("type", "is missing; it is one of \(names.joined(separator: ", "))")
            return nil
        }
        switch type {
        case "latency":
            let connect = Distribution.read("connect", &reader)
            let firstByte = Distribution.read("firstByte", &reader)
            let body = Distribution.read("body", &reader)
            guard connect != nil || firstByte != nil || body != nil else {
                reader.failMissing(
                    "firstByte",
                    or: "connect",
                    "body",
                    because: "or `connect` or `body` must be given"
                )
                return nil
            }
            return .latency(connect: connect, firstByte: firstByte, body: body)
        case "bandwidth":
            let down = reader.integer("downBytesPerSecond", in: 1...1 << 40)
            let up = reader.integer("upBytesPerSecond", in: 1...1 << 40)
            guard down != nil || up != nil else {
                reader.failMissing(
                    "downBytesPerSecond",
                    or: "upBytesPerSecond",
                    because: "or `upBytesPerSecond` must be given"
                )
                return nil
            }
            return .bandwidth(down: down, up: up)
        case "respond": return CannedReply.read(&reader).map { .respond($0) }
        case "reset": return .reset
        case "close": return .close
        case "never": return .never
        case "empty": return .empty
        case "truncate":
            let inside = reader.string("inside")
            if let byte = reader.integer("byte", in: 0...1 << 30) { return .truncate(.byte(byte)) }
            switch inside {
            case "character"?: return .truncate(.insideCharacter)
            case "chunkHeader"?: return .truncate(.insideChunkHeader)
            default:
                reader.failMissing(
                    "byte",
                    because: "must be given, or `inside` as character or chunkHeader"
                )
                return nil
            }
        case "corrupt": return .corrupt(bytes: reader.integer("bytes", in: 1...1 << 20) ?? 1)
        case "contentType": return .contentType(reader.string("value", length: 1...200) ?? "text/html; charset=utf-8")
        case "malformedJSON": return .malformedJSON
        case "malformedChunk": return .malformedChunk
        case "drip":
            let bytes = reader.integer("bytes", in: 1...1 << 30) ?? 1
            return .drip(bytes: bytes, every: reader.seconds("everySeconds", maximum: 86_400) ?? .milliseconds(100))
        case "loseReply": return .loseReply(reader.choice("by", ExchangeCut.self) ?? .reset)
        case "duplicate": return .duplicate
        case "lag":
            let age = reader.seconds("seconds")
            let commits = reader.integer("commits", in: 1...StateHistory.commitsMaximum)
            let isConsistent = reader.bool("consistent", default: true)
            guard (age == nil) != (commits == nil) else {
                reader.failMissing("seconds", or: "commits", because: "or `commits` must be given, not both")
                return nil
            }
            var lag = age.map { Lag(age: $0) } ?? Lag(commits: commits ?? 1)
            lag.isConsistent = isConsistent
            return .lag(lag)
        case "validators":
            guard let mode = reader.choice("mode", ValidatorFault.self) else {
                reader.failMissing("mode", "must be one of wrong, missing, weak, changing")
                return nil
            }
            return .validators(mode)
        case "expireToken": return .expireToken
        case "loss":
            var loss = BurstLoss()
            loss.goodToBad = reader.number("goodToBad", in: 0...1) ?? loss.goodToBad
            loss.badToGood = reader.number("badToGood", in: 0...1) ?? loss.badToGood
            loss.lossInGood = reader.number("lossInGood", in: 0...1) ?? loss.lossInGood
            loss.lossInBad = reader.number("lossInBad", in: 0...1) ?? loss.lossInBad
            loss.timeout = reader.seconds("timeoutSeconds", maximum: 60) ?? loss.timeout
            return .loss(loss)
        case "closeListener": return .closeListener(reader.seconds("seconds", maximum: 3_600) ?? .seconds(5))
        case "staleConnections": return .staleConnections
        case "certificate":
            guard let fault = reader.choice("fault", WrongCertificate.self) else {
                let names = WrongCertificate.allCases.map(\.rawValue).joined(separator: ", ")
                reader.failMissing("fault", "must be one of \(names)")
                return nil
            }
            return .certificate(fault)
        case "noCloseNotify": return .noCloseNotify
        case "live": return LiveFault.read(&reader).map { .live($0) }
        default:
            reader.fail("type", "must be one of \(names.joined(separator: ", "))")
            return nil
        }
    }

    /// The names of all actions.
    static let names = [
        "latency", "bandwidth", "respond", "reset", "close", "never", "empty", "truncate", "corrupt", "contentType",
        "malformedJSON", "malformedChunk", "drip", "loseReply", "duplicate", "lag", "validators", "expireToken", "loss",
        "closeListener", "staleConnections", "live", "certificate", "noCloseNotify",
    ]

    /// The action's name.
    var name: String {
        switch self {
        case .latency: "latency"
        case .bandwidth: "bandwidth"
        case .respond: "respond"
        case .reset: "reset"
        case .close: "close"
        case .never: "never"
        case .empty: "empty"
        case .truncate: "truncate"
        case .corrupt: "corrupt"
        case .contentType: "contentType"
        case .malformedJSON: "malformedJSON"
        case .malformedChunk: "malformedChunk"
        case .drip: "drip"
        case .loseReply: "loseReply"
        case .duplicate: "duplicate"
        case .lag: "lag"
        case .validators: "validators"
        case .expireToken: "expireToken"
        case .loss: "loss"
        case .closeListener: "closeListener"
        case .staleConnections: "staleConnections"
        case .live: "live"
        case .certificate: "certificate"
        case .noCloseNotify: "noCloseNotify"
        }
    }

    var json: JSONValue {
        var object = JSONObject([.init(name: "type", value: .string(name))])
        func add(_ name: String, _ value: JSONValue?) { if let value { object[name] = value } }
        switch self {
        case .latency(let connect, let firstByte, let body):
            add("connect", connect?.json)
            add("firstByte", firstByte?.json)
            add("body", body?.json)
        case .bandwidth(let down, let up):
            add("downBytesPerSecond", down.map { .integer(Int64($0)) })
            add("upBytesPerSecond", up.map { .integer(Int64($0)) })
        case .respond(let reply): for member in reply.json.object?.members ?? [] { add(member.name, member.value) }
        case .truncate(.byte(let byte)): add("byte", .integer(Int64(byte)))
        case .truncate(.insideCharacter): add("inside", .string("character"))
        case .truncate(.insideChunkHeader): add("inside", .string("chunkHeader"))
        case .corrupt(let bytes): add("bytes", .integer(Int64(bytes)))
        case .contentType(let value): add("value", .string(value))
        case .drip(let bytes, let every):
            add("bytes", .integer(Int64(bytes)))
            add("everySeconds", .seconds(every))
        case .loseReply(let cut): add("by", .string(cut.rawValue))
        case .lag(let lag):
            add("seconds", lag.age.map { .seconds($0) })
            add("commits", lag.commits.map { .integer(Int64($0)) })
            add("consistent", .bool(lag.isConsistent))
        case .validators(let mode): add("mode", .string(mode.rawValue))
        case .loss(let loss):
            add("goodToBad", .number(loss.goodToBad))
            add("badToGood", .number(loss.badToGood))
            add("lossInGood", .number(loss.lossInGood))
            add("lossInBad", .number(loss.lossInBad))
            add("timeoutSeconds", .seconds(loss.timeout))
        case .closeListener(let duration): add("seconds", .seconds(duration))
        case .live(let fault): for member in fault.json.object?.members ?? [] { add(member.name, member.value) }
        case .certificate(let fault): add("fault", .string(fault.rawValue))
        case .reset, .close, .never, .empty, .malformedJSON, .malformedChunk, .duplicate, .expireToken,
            .staleConnections, .noCloseNotify:
            break
        }
        return .object(object)
    }
}

extension CannedReply {
    /// The fields that frame a reply or state its time. The server writes them itself.
    private static let serverFields = [
        "connection", "content-length", "date", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade",
    ]

    /// What is wrong with the names and values in `headers`.
    var headerErrors: [String] {
        headers.sorted { $0.key < $1.key }.compactMap { name, value in
            if FieldName(name) == nil { return "has '\(name)', which is not a valid field name" }
            if Self.serverFields.contains(name.lowercased()) {
                return "has '\(name)', which the server writes; truncate and malformedChunk change a reply's framing, "
                    + "and a skew its date"
            }
            let isBad = value.utf8.contains { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }
            return isBad ? "has a control character in the value of '\(name)'" : nil
        }
    }

    static func read(_ reader: inout BodyReader) -> CannedReply? {
        let status = reader.integer("status", in: 200...599)
        if status == nil { reader.failMissing("status", "must be given") }
        var reply = CannedReply(status: status ?? 500)
        reply.problem = reader.string("problem", length: 1...100)
        if let problem = reply.problem, !ProblemType.all.contains(where: { $0.name == problem }) {
            reader.fail("problem", "must be the name of a problem type, as /problems lists them")
        }
        reply.detail = reader.string("detail")
        reply.headers = reader.texts("headers")
        for error in reply.headerErrors { reader.fail("headers", error) }
        reply.body = reader.string("body", length: 0...1 << 20)
        reply.contentType = reader.string("contentType", length: 1...200)
        if var retry = reader.child("retryAfter") {
            if let seconds = retry.integer("seconds", in: 0...31_536_000) {
                reply.retryAfter = .seconds(seconds)
            } else if let seconds = retry.integer("dateInSeconds", in: 0...31_536_000) {
                reply.retryAfter = .date(inSeconds: seconds)
            } else {
                retry.failMissing(
                    "seconds",
                    or: "dateInSeconds",
                    because: "or `dateInSeconds` must be an integer"
                )
            }
            retry.finish()
        }
        return status == nil ? nil : reply
    }

    var json: JSONValue {
        let retry: JSONValue? =
            switch retryAfter {
            case .seconds(let seconds)?: .members(["seconds": .integer(Int64(seconds))])
            case .date(let seconds)?: .members(["dateInSeconds": .integer(Int64(seconds))])
            case nil: nil
            }
        let fields = headers.sorted { $0.key < $1.key }.map {
            JSONObject.Member(name: $0.key, value: .string($0.value))
        }
        return .members([
            "status": .integer(Int64(status)), "problem": problem.map { .string($0) },
            "detail": detail.map { .string($0) }, "headers": fields.isEmpty ? nil : .object(JSONObject(fields)),
            "body": body.map { .string($0) }, "contentType": contentType.map { .string($0) }, "retryAfter": retry,
        ])
    }
}

extension LiveFault {
    static func read(_ reader: inout BodyReader) -> LiveFault? {
        var fault = LiveFault()
        fault.lose = reader.number("lose", in: 0...1) ?? 0
        fault.loseFrame = reader.integer("loseFrame", in: 1...1_000_000_000)
        fault.duplicate = reader.number("duplicate", in: 0...1) ?? 0
        fault.reorder = reader.number("reorder", in: 0...1) ?? 0
        fault.delay = Distribution.read("delay", &reader)
        fault.endAfterFrames = reader.integer("endAfterFrames", in: 0...1_000_000_000)
        fault.endAfter = reader.seconds("endAfterSeconds")
        fault.closeCode = reader.integer("closeCode", in: 1_000...4_999)
        fault.silenceAfterFrames = reader.integer("silenceAfterFrames", in: 0...1_000_000_000)
        guard fault != LiveFault() else {
            let members = "loseFrame, duplicate, reorder, delay, endAfterFrames, endAfterSeconds or silenceAfterFrames"
            reader.failMissing(
                "lose",
                or: "loseFrame",
                "duplicate",
                "reorder",
                "delay",
                "endAfterFrames",
                "endAfterSeconds",
                "closeCode",
                "silenceAfterFrames",
                because: "or one of \(members) must be given"
            )
            return nil
        }
        return fault
    }

    var json: JSONValue {
        .members([
            "lose": lose > 0 ? .number(lose) : nil, "loseFrame": loseFrame.map { .integer(Int64($0)) },
            "duplicate": duplicate > 0 ? .number(duplicate) : nil,
            "reorder": reorder > 0 ? .number(reorder) : nil, "delay": delay?.json,
            "endAfterFrames": endAfterFrames.map { .integer(Int64($0)) },
            "endAfterSeconds": endAfter.map { .seconds($0) }, "closeCode": closeCode.map { .integer(Int64($0)) },
            "silenceAfterFrames": silenceAfterFrames.map { .integer(Int64($0)) },
        ])
    }
}
