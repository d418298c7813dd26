// A client that writes continuously, and logs each intent before the call and its result after it. It runs until it is killed, or
// with `--drain` until the outbox is empty. `storm.py` starts it.
//
//     storm-client --server URL --directory DIR --account NAME --process NAME --run ID --log FILE [--drain SECONDS]

import Foundation
import Larder
import LarderDemo
import LarderModels

struct Options {
    var values: [String: String] = [:]

    init(_ arguments: [String]) {
        var rest = arguments[...]
        while let name = rest.popFirst() { values[name] = rest.popFirst() ?? "" }
    }

    func required(_ name: String) -> String {
        guard let value = values[name], !value.isEmpty else {
            FileHandle.standardError.write(Data("storm-client: \(name) is missing\n".utf8))
            exit(2)
        }
        return value
    }
}

let options = Options(Array(CommandLine.arguments.dropFirst()))
let process = options.required("--process")
let run = options.required("--run")
let handle = options.required("--account")
let log = try IntentLog(path: options.required("--log"))
let conversations = options.required("--conversations").split(separator: ",").map(String.init)
let posts = options.required("--posts").split(separator: ",").map(String.init)

var configuration = LarderClient.Configuration()
configuration.cache.onEvent = { event in
    let record: [String: any Sendable]
    switch event {
    case .rejected(let name, let id, let error):
        record = ["event": "rejected", "operation": name, "id": id.rawValue, "error": "\(error)"]
    case .disk(let event): record = ["event": "disk", "text": "\(event)"]
    case .storageFailed(let error): record = ["event": "storageFailed", "error": "\(error)"]
    default: return
    }
    do { try log.write(record.merging(["process": process, "run": run]) { old, _ in old }) } catch { exit(3) }
}
let clock = ContinuousClock()

/// Opens the client. A full disk is logged, and tried again until it has room.
func open() async throws -> LarderClient {
    while true {
        do {
            return try await LarderClient(
                server: options.required("--server"),
                account: handle,
                directory: options.required("--directory"),
                configuration
            )
        } catch {
            try log.write(["event": "notOpened", "error": "\(error)", "process": process, "run": run])
        }
        try await clock.sleep(for: .milliseconds(300))
    }
}

let client = try await open()
while client.session.state == .signedOut {
    do { try await client.signIn(handle: handle, password: "larder") } catch {
        try await clock.sleep(for: .milliseconds(200))
    }
}

/// Logs an intent, carries it out, and logs its result.
func attempt(_ intent: [String: any Sendable], _ work: () async throws -> String) async throws {
    try log.write(intent)
    var result = intent
    do { result["result"] = try await work() } catch {
        result["result"] = (error as? LarderError)?.code.rawValue ?? "\(error)"
        result["error"] = "\(error)"
        result["status"] = (error as? LarderError)?.status
    }
    if case .expired = client.session.state { result["session"] = "expired" }
    try log.write(result)
}

if let seconds = options.values["--drain"].flatMap(Double.init) {
    let drained = try await client.cache.outbox.drain(within: .seconds(seconds))
    let rest = drained.map {
        ["\($0.entry.operation)", "\($0.reason)", $0.entry.error.map { "\($0)" } ?? ""]
    }
    try log.write([
        "drained": rest, "unresolved": client.bank.unresolved.count, "process": process, "run": run,
        "session": "\(client.session.state)",
    ])
    client.close()
    exit(0)
}

func pause(_ milliseconds: ClosedRange<Int>) async throws {
    try await clock.sleep(for: .milliseconds(Int.random(in: milliseconds)))
}

await withThrowingTaskGroup(of: Void.self) { group in
    group.addTask {
        for number in 0... {
            let conversation = conversations[Int.random(in: conversations.indices)]
            let text = "\(process) \(run) \(number)"
            try await attempt(["kind": "message", "to": conversation, "text": text, "process": process, "run": run]) {
                try client.chat.send(text, to: conversation)
                return "kept"
            }
            try await pause(5...120)
        }
    }
    group.addTask {
        for number in 0... {
            let post = posts[Int.random(in: posts.indices)]
            let isLike = Bool.random()
            try await attempt([
                "kind": "like", "post": post, "liked": isLike, "number": number, "process": process, "run": run,
            ]) {
                try client.likes.set(isLike, post)
                return "kept"
            }
            try await pause(5...150)
        }
    }
    group.addTask {
        for number in 0... {
            let note = "\(process) \(run) \(number)"
            try await attempt(["kind": "transfer", "note": note, "process": process, "run": run]) {
                let balances = try await client.bank.validatedAccounts()
                let accounts = balances.value.items
                guard let from = accounts.randomElement(),
                    let to = accounts.filter({ $0.id != from.id && $0.balance.currency == from.balance.currency }
                    )
                    .randomElement()
                else { return "skipped" }
                let amount = Money(minorUnits: 1, currency: from.balance.currency)
                _ = try await client.bank.transfer(
                    Bank.TransferOrder(from: from.id, to: to.id, amount, note: note),
                    given: balances
                )
                return "done"
            }
            try await pause(20...200)
        }
    }
    group.addTask {
        while true {
            // Reads keep the change feed and the session busy; that they fail under faults is expected.
            do {
                _ = try await client.cache.snapshot(client.feed.newest)
                _ = try await client.cache.snapshot(client.chat.messages(conversations[0]))
            } catch is LarderError {}
            try await pause(50...400)
        }
    }
    do { while try await group.next() != nil {} } catch {
        FileHandle.standardError.write(Data("storm-client: \(error)\n".utf8))
        exit(4)
    }
}
