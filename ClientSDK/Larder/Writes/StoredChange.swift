import LarderCoding
import LarderResources
import LarderStorage

/// A local change of an entity as data.
struct StoredChange: Codable, Sendable {
    enum Kind: String, Codable, Sendable { case modify, create, remove }

    var kind: Kind
    /// The entity's type in the store.
    var type: String
    /// The name by which the type is found after a restart; nil if the type is private or declared within a function.
    var typeName: String?
    var id: String
    /// A merge patch (`modify`) or the entity (`create`). Stored as JSON text: a change whose text cannot be read is not decoded.
    var document: JSONValue?
    /// The entity before the change (`modify`): what a conflict is judged by. Stored as text, too.
    var base: JSONValue?

    var key: EntityKey { EntityKey(type: type, id: id) }

    init<E: CacheEntity>(_ kind: Kind, _ type: E.Type, _ id: E.ID, _ value: JSONValue? = nil, base: JSONValue? = nil) {
        self.kind = kind
        self.type = E.entityType
        typeName = Self.name(of: type)
        self.id = id.description
        document = value
        self.base = base
    }

    private enum CodingKeys: String, CodingKey { case kind, type, typeName, id, value, base }

    init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        kind = try values.decode(Kind.self, forKey: .kind)
        type = try values.decode(String.self, forKey: .type)
        typeName = try values.decodeIfPresent(String.self, forKey: .typeName)
        id = try values.decode(String.self, forKey: .id)
        document = try values.decodeIfPresent(String.self, forKey: .value).map { try MergePatch.parse($0) }
        base = try values.decodeIfPresent(String.self, forKey: .base).map { try MergePatch.parse($0) }
    }

    func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(kind, forKey: .kind)
        try values.encode(type, forKey: .type)
        try values.encodeIfPresent(typeName, forKey: .typeName)
        try values.encode(id, forKey: .id)
        try values.encodeIfPresent(document.map { MergePatch.text($0) }, forKey: .value)
        try values.encodeIfPresent(base.map { MergePatch.text($0) }, forKey: .base)
    }

    /// The name by which a type is found at run time; nil if it cannot be found.
    static func name(of type: any CacheEntity.Type) -> String? {
        guard let name = _mangledTypeName(type), _typeByName(name) != nil else { return nil }
        return name
    }

    /// The type of the entity; nil if this version of the application does not have it.
    var entityType: (any CacheEntity.Type)? {
        guard let name = typeName, let found = _typeByName(name) as? any CacheEntity.Type, found.entityType == type
        else {
            return nil
        }
        return found
    }

    /// Adds a later change to changes; two changes of one entity become one where they can.
    static func add(_ new: StoredChange, to changes: inout [StoredChange]) {
        guard let index = changes.lastIndex(where: { $0.key == new.key }) else { return changes.append(new) }
        let old = changes[index]
        switch (old.kind, new.kind) {
        case (_, .create), (_, .remove): changes[index] = new
        case (.modify, .modify), (.create, .modify):
            guard let first = old.document, let second = new.document,
                let both = old.kind == .modify ? MergePatch.compose(first, second) : MergePatch.apply(second, to: first)
            else { return changes.append(new) }
            changes[index].document = both
        case (.remove, .modify): break
        }
    }

    // MARK: Showing

    /// Adds the change to those that are shown.
    func show(in local: inout Outbox.LocalChanges) {
        if kind == .remove { return local.remove(key) }
        guard let document else { return }
        if let entityType { return show(document, as: entityType, in: &local) }
        // Its type cannot be found, but a stored value has it.
        guard kind == .modify else { return }
        local.modify(key) { entity in Self.patched(entity, document) }
    }

    private func show<E: CacheEntity>(_ document: JSONValue, as _: E.Type, in local: inout Outbox.LocalChanges) {
        switch kind {
        case .modify: local.modify(E.self, at: key) { $0 = Self.patched($0, document) }
        case .create:
            // A version of the application whose type has changed cannot show it; it is sent all the same.
            guard let entity = try? MergePatch.value(E.self, document) else { return }
            local.create(entity)
        case .remove: local.remove(key)
        }
    }

    /// The entity with a change, or unchanged if the change does not fit its type any more.
    private static func patched<E: CacheEntity>(_ entity: E, _ patch: JSONValue) -> E {
        (try? MergePatch.apply(patch, to: entity)) ?? entity
    }
}

/// A local change of a list as data.
struct StoredListEdit: Codable, Sendable {
    enum Place: String, Codable, Sendable { case first, last, nowhere }

    var name: String
    /// Names and values of the list's parameters.
    var parameters: [[String]]
    var type: String
    var id: String
    var place: Place

    init(_ list: QueryKey, _ member: EntityKey, _ place: Place) {
        name = list.name
        parameters = list.parameters.map { [$0.name, $0.value] }
        (type, id) = (member.type, member.id)
        self.place = place
    }

    var list: QueryKey {
        QueryKey(name, parameters.filter { $0.count == 2 }.map { QueryKey.Parameter($0[0], $0[1]) })
    }

    func changesSame(as other: StoredListEdit) -> Bool { list == other.list && type == other.type && id == other.id }

    /// Moves the member to its place. A second application has no effect.
    ///
    /// - Parameter new: the member's identifier that the server has given; nil: it keeps its own.
    func apply(to keys: inout [EntityKey], as new: String? = nil) {
        let member = EntityKey(type: type, id: new ?? id)
        let known = [member, EntityKey(type: type, id: id)]
        if place != .nowhere, let index = keys.firstIndex(where: { known.contains($0) }) {
            keys[index] = member
            var isFirst = true
            keys.removeAll { key in
                guard known.contains(key) else { return false }
                defer { isFirst = false }
                return !isFirst
            }
            return
        }
        keys.removeAll { known.contains($0) }
        switch place {
        case .first: keys.insert(member, at: 0)
        case .last: keys.append(member)
        case .nowhere: break
        }
    }
}
