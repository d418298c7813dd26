"""Tasks of a team that runs a neighbourhood hall: what is to be done, by whom, until when."""

import datetime

TITLES = """
Order new light bulbs for the stage
Repair the hinge of the side door
Write the invitation to the summer fair
Book the room for the choir's rehearsals
Return the borrowed ladder
Count the folding chairs
Find a second pair of hands for the bar
Clean the coffee machine properly
Update the emergency phone list
Paint the fence before the rain
Renew the insurance of the van
Ask three firms about the roof
Translate the house rules into Polish
Sort the lost property
Check the fire extinguishers
Put the minutes of May online
Print forty song sheets
Water the pots at the entrance
Collect the keys from last week's course
Draw the plan of the seats
Find out why the projector flickers
Replace the batteries of the smoke alarms
Thank the bakery for the bread
Pay the invoice of the plumber
Label the shelves in the cellar
Borrow a tent for the courtyard
Call the city about the bench
Fold the flyers
Test the microphones with the band
Choose a date for the flea market
Answer the letter from the school
Order tea, sugar and oat milk
Mend the red curtain
Take the old monitors to recycling
Make a list of everybody's allergies
Reserve the cargo bike for Saturday
Change the code of the back gate
Send the photographs to the newspaper
Sharpen the kitchen knives
Look for a teacher for the sewing class
Check the first-aid box
Plan who opens on Sundays
Dry the tablecloths
Explain the new heating to the groups
Bring the piano tuner in
Hang the pictures of the exhibition
Clear the gutter above the workshop
Ask Lena for the recipe of the soup
Write down how the alarm is switched off
Compare two offers for the sound system
Plant herbs beside the steps
Fix the wobbling table
Find the missing box of costumes
Set up the shared calendar
Move the paint out of the boiler room
Apply for the grant of the district
Prepare the quiz for Friday
Measure the windows for blinds
Invite the neighbours from number 12
Empty the compost
Make the sign for the car park
Train two people on the till
Replace the broken tile in the hall
Get a quote for solar panels
Put up shelves in the reading corner
Wash the sports vests
Decide on the colour of the benches
Ask for spare keys at the locksmith
Back up the membership list
Describe the way for wheelchair users
""".strip().splitlines()

TASKS = 130


def tasks(rng, people, joined, begin, end, stamp):
    """Rows in order of creation; some titles return, as they do."""
    titles = TITLES + rng.sample(TITLES, TASKS - len(TITLES))
    rng.shuffle(titles)
    span = int((end - begin).total_seconds() * 1000)
    moments = sorted(begin + datetime.timedelta(milliseconds=moment) for moment in rng.sample(range(span), TASKS))
    rows = []
    for index, (title, created) in enumerate(zip(titles, moments)):
        there = [person for person in people if joined[person] <= created]
        age = (end - created).days
        dice = rng.random() * 90
        status = "done" if dice < age * 0.8 else "started" if rng.random() < 0.3 else "open"
        assignee = rng.choice(there) if status != "open" or rng.random() < 0.6 else None
        # The first two have something to do in every example.
        if assignee is not None and rng.random() < 0.25:
            assignee = rng.choice((1, 2))
        due = (created + datetime.timedelta(days=rng.randrange(2, 70))).date() if rng.random() < 0.8 else None
        updated = created
        if status != "open":
            updated = created + datetime.timedelta(milliseconds=rng.randrange(60_000, max(60_001, int((end - created).total_seconds() * 1000))))
        rows.append({
            "id": index + 1, "creator": rng.choice(there), "title": title, "status": status, "assignee": assignee,
            "due": due.isoformat() if due else None, "createdAt": stamp(created), "updatedAt": stamp(min(updated, end)),
        })
    return rows
