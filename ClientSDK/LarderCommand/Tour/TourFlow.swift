import LarderCoding

/// A path with questions: a step leads to the next one, and a question with the answer "yes" to what is beside it.
struct TourFlow: Sendable {
    struct Step: Sendable {
        let text: String
        /// What follows a question that is answered with "yes"; nil for a step.
        var yes: String?
    }

    let title: String
    let steps: [Step]

    var json: JSONValue {
        let values = steps.map { step in
            JSONValue.members([("text", .string(step.text)), ("yes", step.yes.map { .string($0) } ?? .null)])
        }
        return .members([("kind", .string("flow")), ("title", .string(title)), ("steps", .array(values))])
    }

    /// The drawing: steps as boxes below each other, what follows "yes" to their right.
    var svg: String {
        let height = steps.count * 62 - 14
        var text = "<svg viewBox=\"0 0 760 \(height)\" role=\"img\">"
        for (index, step) in steps.enumerated() {
            let y = index * 62
            let tone = step.yes == nil ? "neutral" : "warning"
            text += "<rect x=\"1\" y=\"\(y + 1)\" width=\"330\" height=\"46\" rx=\"6\" class=\"box \(tone)\"/>"
            text += "<text x=\"14\" y=\"\(y + 29)\">\(TourPage.escaped(step.text))</text>"
            if index + 1 < steps.count {
                text += "<path class=\"axis\" d=\"M166 \(y + 48)V\(y + 61)\"/>"
                if step.yes != nil { text += "<text x=\"174\" y=\"\(y + 60)\" class=\"answer-word\">no</text>" }
            }
            guard let yes = step.yes else { continue }
            text += "<path class=\"axis\" d=\"M332 \(y + 24)H418\"/>"
            text += "<text x=\"364\" y=\"\(y + 18)\" class=\"answer-word\">yes</text>"
            text += "<rect x=\"419\" y=\"\(y + 1)\" width=\"340\" height=\"46\" rx=\"6\" class=\"box good\"/>"
            text += "<text x=\"432\" y=\"\(y + 29)\">\(TourPage.escaped(yes))</text>"
        }
        return text + "</svg>"
    }
}

/// A memory tier in the page that the reader fills with reads of their own, step by step.
struct TourTryout: Sendable {
    let title: String
    /// The reads that the page begins with.
    let reads: [String]
    let room: Int

    var json: JSONValue {
        .members([
            ("kind", .string("tryout")), ("title", .string(title)),
            ("reads", .array(reads.map { .string($0) })), ("room", .integer(Int64(room))),
        ])
    }

    /// The field, the choice of the policy, and the place for the steps, which the script of the page fills.
    var html: String {
        let policies = [("lru", "read longest ago"), ("lfu", "read least often"), ("fifo", "stored first")]
        let options = policies.map { "<option value=\"\($0.0)\">\($0.1)</option>" }.joined()
        return """
            <div class="tryout" data-room="\(room)"><p><label>Reads, in order: <input value="\(reads.joined(separator: " "))" \
            size="40"></label> <label>What leaves first: <select>\(options)</select></label> \
            <button class="back">Back</button> <button class="next">Next</button></p>
            <p class="state" aria-live="polite">This needs scripts.</p></div>
            """
    }

    /// The policies in a few lines: the last of the kept entries is the newest.
    static let script = """
        for (const figure of document.querySelectorAll('.tryout')) {
          const [field, choice, state] = ['input', 'select', '.state'].map(name => figure.querySelector(name));
          let at = 0;
          const show = by => {
            const reads = field.value.split(/\\s+/).filter(word => word);
            at = Math.min(reads.length, Math.max(0, at + by));
            let [kept, hits, last] = [[], 0, 'Nothing was read yet.'];
            for (const key of reads.slice(0, at)) {
              const place = kept.findIndex(entry => entry.key === key);
              if (place >= 0) {
                hits += 1;
                kept[place].uses += 1;
                if (choice.value !== 'fifo') kept.push(kept.splice(place, 1)[0]);
                last = `${key} is read: in memory.`;
                continue;
              }
              last = `${key} is read: not in memory, stored.`;
              if (kept.length === Number(figure.dataset.room)) {
                const least = choice.value === 'lfu' ? Math.min(...kept.map(entry => entry.uses)) : null;
                const victim = least === null ? 0 : kept.findIndex(entry => entry.uses === least);
                last += ` ${kept.splice(victim, 1)[0].key} leaves.`;
              }
              kept.push({ key, uses: 0 });
            }
            const names = kept.map(entry => entry.key).join(' ') || 'nothing';
            state.textContent = `${at} of ${reads.length}. ${last} In memory: ${names}. ${hits} hits.`;
          };
          figure.querySelector('.back').onclick = () => show(-1);
          figure.querySelector('.next').onclick = () => show(1);
          field.oninput = choice.oninput = () => show(0);
          show(0);
        }
        """
}
