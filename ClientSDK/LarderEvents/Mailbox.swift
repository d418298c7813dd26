/// A mailbox for the latest element: a newer one replaces an unread one. Safe from any thread; one task may wait.
package final class Mailbox<Element: Sendable>: Sendable {
    private let mailbox = EventMailbox<Element>(limit: 1)

    package init() {}

    /// Sets the element; returns the unread one that it replaces. Has no effect after the end.
    @discardableResult package func put(_ element: Element) -> Element? { mailbox.post(element) }

    /// Ends the mailbox. After the unread element `next` returns nil.
    package func end() { mailbox.finish() }

    /// Returns the unread element or waits for one; nil after the end and for a cancelled task, which also ends the
    /// mailbox.
    package func next() async -> Element? {
        let element = await mailbox.next()
        if element == nil { end() }
        return element
    }
}
