import LarderEvents
import LarderHTTP
import LarderResources
import LarderTransport
import Synchronization

/// The uploads of a client: their files, and how much of each the server has. Safe from any thread.
final class Uploading: Sendable {
    /// Nil if the client has no directory.
    let files: UploadFiles?
    private let progress = Mutex<[OperationID: RequestBody.Progress]>([:])
    private let hub = EventHub<[OperationID: RequestBody.Progress]>()
    private let sweeping = Mutex(Sweeping())

    /// Weak: the events of the cache lead here.
    private struct Sweeping: Sendable {
        weak var outbox: Outbox?
        weak var session: BearerSession?
        /// Without the session, which holds the cache.
        var source: HTTPSource?
        var isQueued = false
    }

    init(_ files: UploadFiles?) { self.files = files }

    /// Removes the copies that earlier processes have left, and from now on those of writes that are settled.
    func begin(_ outbox: Outbox, _ source: HTTPSource, _ onEvent: @escaping @Sendable (CacheEvent) -> Void) {
        sweeping.withLock { sweeping in
            (sweeping.outbox, sweeping.source) = (outbox, source)
            sweeping.session = source.authorizer as? BearerSession
            sweeping.source?.authorizer = nil
        }
        sweep(onEvent)
    }

    /// Looks for settled writes after an event of the cache.
    func note(_ event: CacheEvent, _ onEvent: @escaping @Sendable (CacheEvent) -> Void) {
        switch event {
        case .accepted(WriteOperations.uploadName, _), .outbox(.cancelled, _): sweep(onEvent)
        default: break
        }
    }

    /// Removes the copies of settled writes, and then tells the server of uploads that were dropped. Once for all events until it begins.
    private func sweep(_ onEvent: @escaping @Sendable (CacheEvent) -> Void) {
        let isQueued = sweeping.withLock { sweeping in
            defer { sweeping.isQueued = true }
            return sweeping.isQueued
        }
        guard let files, !isQueued else { return }
        Task { [self] in
            let (outbox, session, known) = sweeping.withLock { sweeping in
                sweeping.isQueued = false
                return (sweeping.outbox, sweeping.session, sweeping.source)
            }
            guard let outbox, let session, var source = known else { return }
            source.authorizer = session
            do throws(LarderError) {
                let abandoned = try await files.sweep { () throws(LarderError) in
                    let writes = try outbox.storedInputs(of: WriteOperations.uploadName, as: StoredWrite.self)
                    return Set(writes.compactMap(\.file?.name))
                } onFailure: {
                    onEvent(.storageFailed($0))
                }
                for url in abandoned where source.isOwn(url) {
                    var request = TransportRequest(method: .delete, url: url, fields: source.configuration.fields)
                    for field in source.configuration.uploads.fields { request.fields.set(field.name, field.value) }
                    // A server that does not get it forgets the upload later.
                    do throws(LarderError) { _ = try await source.send(request) } catch {
                        if error.code != .closed { onEvent(.failed(resource: WriteOperations.uploadName, error)) }
                    }
                }
            } catch {
                // After the end of the client, the next start sweeps.
                if error.code != .closed { onEvent(.storageFailed(error)) }
            }
        }
    }

    /// The progress of the uploads that are being sent, now and after each change. A slow reader gets the newest element.
    var states: EventSequence<[OperationID: RequestBody.Progress]> {
        let sequence = hub.subscribe(limit: 1)
        change { _ in }
        return sequence
    }

    private func change(_ body: (inout [OperationID: RequestBody.Progress]) -> Void) {
        progress.withLock { progress in
            body(&progress)
            hub.post(progress)
        }
    }

    func send(
        _ attempt: Outbox.Attempt<StoredWrite>,
        _ source: HTTPSource
    ) async throws(LarderError) -> TransportResponse {
        guard let files, let file = attempt.input.file else {
            throw LarderError(.invalidArgument, "The write has no file, or the client has no directory. Drop it.")
        }
        defer { change { $0[attempt.id] = nil } }
        let sender = UploadSender(
            source: source,
            files: files,
            write: attempt.input,
            file: file,
            key: attempt.idempotencyKey
        ) { [self] sent in
            change { $0[attempt.id] = RequestBody.Progress(sent: Int(sent), total: Int(file.length)) }
        }
        do throws(LarderError) {
            return try await WriteOperations.accepted(try await sender.send(), attempt, source)
        } catch {
            if Outbox.Verdict(error) == .rejected { try await sender.forget() }
            throw error
        }
    }
}
