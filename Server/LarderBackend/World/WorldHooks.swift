package import LarderEngine

/// The connection of a world to its control plane.
///
/// The backend declares this protocol and does not know its implementation. Called from any thread; unless stated otherwise,
/// not while the store is locked.
package protocol WorldHooks: AnyObject, Sendable {
    /// The protocol variants that the world uses.
    var dialect: Dialect { get }

    /// Called after each commit while the store is locked: it must not wait, and must not use the world.
    ///
    /// - Parameter number: the number of committed transactions since the world was made.
    func committed(_ number: Int64)

    /// A filter that only records the frames of a live channel; nil when frames are not recorded.
    func frameRecorder(for world: World, opening: Request, viewer: Int64) -> (any LiveFilter)?
}
