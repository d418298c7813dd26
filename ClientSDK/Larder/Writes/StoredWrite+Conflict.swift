import Foundation
import LarderCoding
import LarderHTTP
import LarderResources
import LarderTransport

/// An edit that the server has rejected because its entity has another state (409, 412).
struct Conflict {
    let write: StoredWrite
    let source: HTTPSource

    init(_ write: StoredWrite, _ source: HTTPSource) { (self.write, self.source) = (write, source) }

    /// Finds out what the server has: from the reply, or else by reading the path of the write.
    ///
    /// - Parameter isAgain: whether an earlier attempt may have been carried out. If the server then has what this one wants, it is
    ///   accepted: the earlier one has changed the state that it was made from.
    /// - Returns: the reply with the state, if the write counts as carried out.
    /// - Throws: the error of the rejection; its cause is the state, if it is known.
    func resolve(
        _ response: TransportResponse,
        _ error: LarderError,
        isAgain: Bool
    ) async throws(LarderError) -> TransportResponse {
        if let base = write.edited { return try await resolve(response, error, base, isAgain: isAgain) }
        guard isAgain else { throw error }
        switch (write.method, write.changes.first?.kind) {
        case ("DELETE", _):
            let found = try await read()
            guard source.isGone(found) else { throw error }
            return found
        case ("PUT", .create?):
            guard let change = write.changes.first, let type = change.entityType else { throw error }
            let found = try await read()
            guard hasKey(change.key, type, found) else { throw error }
            return found
        default: throw error
        }
    }

    private func hasKey<E: CacheEntity>(_ key: EntityKey, _ type: E.Type, _ response: TransportResponse) -> Bool {
        state(type, of: response)?.entityKey == key
    }

    /// What the server has at the path of the write.
    ///
    /// - Throws: the error of a reply that says neither that nor that there is nothing.
    private func read() async throws(LarderError) -> TransportResponse {
        let found = try await source.send(source.request(.get, write.path, Fields()))
        guard found.status == .ok && source.isAccepted(found) || source.isGone(found) else {
            throw source.error(for: found, source.url(write.path))
        }
        return found
    }

    private func resolve<E: CacheEntity>(
        _ response: TransportResponse,
        _ error: LarderError,
        _ base: E,
        isAgain: Bool
    ) async throws(LarderError) -> TransportResponse {
        var found = response
        var state = state(E.self, of: response)
        if state == nil, ["PUT", "PATCH"].contains(write.method) {
            do {
                found = try await read()
                state = self.state(E.self, of: found)
            } catch {
                // The conflict is known all the same, unless an earlier attempt has caused it.
                if isAgain { throw error }
            }
        }
        guard let state, state.entityKey == base.entityKey || write.changes.first?.key == state.entityKey else {
            throw error
        }
        if isAgain, let patch = write.changes.first?.document, (try? MergePatch.apply(patch, to: state)) == state {
            var accepted = found
            accepted.status = .ok
            return accepted
        }
        var conflict = error
        conflict.cause = Outbox.CurrentState(state, validator: source.validator(of: found.fields))
        throw conflict
    }

    /// The entity in a reply of any status: the whole content, or the member `current` of a problem document.
    private func state<E: CacheEntity>(_ type: E.Type, of response: TransportResponse) -> E? {
        guard HTTPSource.mediaType(response).contains("json") else { return nil }
        if let whole = try? source.configuration.decoder.decode(type, from: Data(response.body)) { return whole }
        guard let content = try? JSONParser.parse(response.body), let member = content["current"] else { return nil }
        return try? source.configuration.decoder.decode(type, from: Data(MergePatch.text(member).utf8))
    }
}

extension StoredWrite {
    /// The entity before the edit; nil if the write is no edit, or of a type that this version of the application does not have.
    var edited: (any CacheEntity)? {
        guard let change = changes.first, change.kind == .modify, let base = change.base, let type = change.entityType
        else { return nil }
        func value<E: CacheEntity>(_ type: E.Type) -> (any CacheEntity)? { try? MergePatch.value(type, base) }
        return value(type)
    }

    /// The write that makes the wanted value of the server's one: with its ETag in place of an earlier one, or with `*` if it is not known,
    /// because a server may require a condition; and in a JSON body the members that have the names and values of the entity's.
    ///
    /// - Returns: nil if the server has that value.
    func resolved(
        to wanted: any CacheEntity,
        over theirs: any CacheEntity,
        validator: String?
    ) throws -> StoredWrite? {
        let (new, known) = (try MergePatch.document(wanted), try MergePatch.document(theirs))
        guard let patch = MergePatch.difference(from: known, to: new) else { return nil }
        var write = self
        for index in write.fields.indices where write.fields[index].first?.lowercased() == "if-match" {
            write.fields[index] = ["If-Match", validator ?? "*"]
        }
        if let text = body, var members = try? MergePatch.parse(text).object, let base = changes[0].base,
            let old = changes[0].document.map({ MergePatch.apply($0, to: base) })
        {
            let isPatch = method == "PATCH"
            for member in members.members where old[member.name] == member.value {
                let isSame = isPatch && new[member.name] == known[member.name]
                members[member.name] = isSame ? nil : new[member.name]
            }
            if isPatch {
                for member in patch.object?.members ?? [] { members[member.name] = new[member.name] ?? .null }
            }
            write.body = MergePatch.text(.object(members))
        }
        write.changes[0].document = patch
        write.changes[0].base = known
        return write
    }
}
