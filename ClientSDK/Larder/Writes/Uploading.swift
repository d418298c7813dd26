import LarderEvents
import LarderResources
import LarderTransport
import Synchronization

/// The uploads of a client: their files, and how much of each the server has. Safe from any thread.
final class Uploading: Sendable {
    /// Nil if the client has no directory.
    let files: UploadFiles?
    private let progress = Mutex<[OperationID: RequestBody.Progress]>([:])
    private let hub = EventHub<[OperationID: RequestBody.Progress]>()
    private let outbox = Mutex(Reference())

    /// Weak: the events of the cache lead here.
    private struct Reference: Sendable {
        weak var outbox: Outbox?
    }

    init(_ files: UploadFiles?) { self.files = files }

    /// Removes the copies that earlier processes have left, and from now on those of writes that are settled.
    func begin(_ outbox: Outbox, _ onFailure: (LarderError) -> Void) {
        self.outbox.withLock { $0.outbox = outbox }
        sweep(onFailure)
    }

    /// Looks for settled writes after an event of the cache.
    func note(_ event: CacheEvent, _ onFailure: (LarderError) -> Void) {
        switch event {
        case .operation(WriteOperations.uploadName, _, .accepted), .outbox(.cancelled, _): sweep(onFailure)
        default: break
        }
    }

    private func sweep(_ onFailure: (LarderError) -> Void) {
        guard let files, let outbox = outbox.withLock({ $0.outbox }) else { return }
        do throws(LarderError) {
            try files.sweep { () throws(LarderError) in
                Set(
                    try outbox.storedInputs(of: WriteOperations.uploadName, as: StoredWrite.self).compactMap(
                        \.file?.name
                    )
                )
            }
        } catch { onFailure(error) }
    }

    /// The progress of the uploads that are being sent, now and after each change. A slow reader gets the newest element.
    var states: EventSequence<[OperationID: RequestBody.Progress]> {
        let sequence = hub.subscribe(limit: 1)
        change { _ in }
        return sequence
    }

    private func change(_ body: (inout [OperationID: RequestBody.Progress]) -> Void) {
        let wakeups = progress.withLock { progress in
            body(&progress)
            return hub.post(progress)
        }
        for wakeup in wakeups { wakeup.resume() }
    }

    func send(
        _ attempt: Outbox.Attempt<StoredWrite>,
        _ source: HTTPSource
    ) async throws(LarderError) -> TransportResponse {
        try WriteOperations.checkIDs(attempt.input)
        guard let files, let file = attempt.input.file else {
            throw LarderError(.invalidArgument, "The write has no file, or the client has no directory. Drop it.")
        }
        defer { change { $0[attempt.id] = nil } }
        let sender = UploadSender(source: source, files: files) { [self] sent in
            change { $0[attempt.id] = RequestBody.Progress(sent: Int(sent), total: Int(file.length)) }
        }
        return try await sender.send(attempt.input.request(to: source, key: attempt.idempotencyKey), file)
    }
}
