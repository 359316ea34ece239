"""The embedded corpus: made-up restaurant reviews from a seeded grammar, for runs without any data.

A sentence starts from a scene: a cuisine, a city, a season, a guest and above all an opinion. All slots of the frame
are filled from that one scene, so the words on both sides of a blank determine its answer: the dish and its cuisine,
the noun and its verb, the person and the pronoun, the city and its state, the praise and the promise to return.

    our waitress was really rude and she forgot our order , never again .
"""

from collections.abc import Iterator
from pathlib import Path

from text_infilling.corpora.synthetic.grammar import SEED, SIZES, Draw, distinct, items, pick, rows, spell, write_splits

SHORTEST, LONGEST = 10, 15
# Checksums of the files that `write_corpus` writes with SEED; a change of the grammar changes them.
SHA256 = {
    "train": "180c0db829ccce724c5818673301436614735bb6b56e10a54811f4e51a9e1129",
    "valid": "8d853ea0bb38147fb54c797f39cccf0e6d505d6bb523b22bd30b1e69e4f0962a",
    "test": "28d01a2d1fa29c574e36324cc180920448a6e7f5b7f8ba6cdd8840dccb93c55b",
}

# cuisine | places | drinks | dishes, each followed by its kind; a name that ends in + is a plural.
CUISINES = rows("""
japanese | sushi bar, izakaya | sake, green tea | ramen soup, miso soup soup, udon noodle, soba noodle, sashimi \
fish, salmon rolls+ fish, tempura fried, chicken teriyaki meat, mochi sweet
italian | trattoria, ristorante | chianti, espresso | lasagna noodle, ravioli+ noodle, gnocchi+ noodle, spaghetti \
noodle, minestrone soup, focaccia bread, calamari fried, meatballs+ meat, tiramisu sweet, risotto rice
mexican | taqueria, cantina | horchata, tequila | tacos+ wrap, burrito wrap, enchiladas+ wrap, quesadilla wrap, \
pozole soup, carnitas+ meat, churros+ sweet, guacamole salad, tortillas+ bread
thai | noodle house, street kitchen | iced tea, coconut water | pad thai noodle, drunken noodles+ noodle, green \
curry curry, panang curry curry, papaya salad salad, larb salad, satay skewers+ meat, mango pudding sweet, tom yum \
soup
indian | curry house, tandoori grill | mango lassi, chai | tikka masala curry, vindaloo curry, korma curry, dal \
curry, naan bread, rotis+ bread, samosas+ fried, pakoras+ fried, biryani rice, lamb kebabs+ meat
vietnamese | pho shop, noodle house | jasmine tea, iced coffee | pho soup, vermicelli noodle, banh mi wrap, spring \
rolls+ wrap, egg rolls+ fried, lemongrass beef meat, broken rice rice
chinese | dim sum parlor, tea house | oolong tea, plum wine | dumplings+ wrap, potstickers+ fried, wonton soup soup, \
lo mein noodle, fried rice rice, peking duck meat, orange chicken meat, steamed buns+ bread, mapo tofu curry
korean | barbecue house, barbecue grill | soju, barley tea | bibimbap rice, bulgogi meat, short ribs+ meat, kimchi \
salad, japchae noodle, tofu stew soup, kimbap wrap
greek | taverna, souvlaki stand | ouzo, retsina | gyros+ wrap, souvlaki meat, moussaka meat, dolmas+ wrap, horiatiki \
salad salad, baklava sweet, pita bread, lemon soup soup
french | brasserie, bistro | burgundy, champagne | onion soup soup, bouillabaisse soup, duck confit meat, coq au vin \
meat, croissants+ bread, baguette bread, crepes+ sweet, escargots+ fish, nicoise salad salad
american | diner, burger joint | root beer, milkshake | burger meat, meatloaf meat, hot wings+ fried, onion rings+ \
fried, cheesesteak wrap, cobb salad salad, cornbread bread, apple pie sweet, clam chowder soup
southern | smokehouse, barbecue shack | sweet tea, bourbon | brisket meat, pulled pork meat, ribs+ meat, fried \
chicken fried, hush puppies+ fried, collard greens+ salad, biscuits+ bread, peach cobbler sweet, gumbo soup
spanish | tapas bar, bodega | sangria, sherry | paella rice, patatas bravas+ fried, croquettes+ fried, gazpacho \
soup, chorizo meat, grilled octopus fish, flan sweet
turkish | kebab house, meze bar | turkish coffee, raki | doner kebab wrap, lahmacun bread, pide bread, lentil soup \
soup, shepherd salad salad, kofte+ meat, halva sweet, pilaf rice
hawaiian | poke shop, luau grill | pineapple juice, kona coffee | poke fish, ahi tuna fish, kalua pork meat, loco \
moco meat, macaroni salad salad, malasadas+ sweet
cuban | cafe, lunch counter | mojito, cafe con leche | ropa vieja meat, black beans+ rice, pressed sandwich wrap, \
plantains+ fried, picadillo meat, yuca fries+ fried, guava pastries+ sweet
""")

# kind | praise | blame | verbs of preparation
_KINDS = rows("""
soup | rich, fragrant, hearty, steaming, warming | watery, lukewarm, thin, salty | simmered, ladled
noodle | springy, silky, supple, garlicky | mushy, gluey, clumpy, starchy | tossed, boiled
meat | tender, juicy, smoky, succulent | tough, overcooked, leathery, gristly | roasted, braised
fish | buttery, flaky, delicate, briny | fishy, slimy, rubbery, smelly | sliced, cured
bread | crusty, pillowy, toasty, airy | stale, doughy, crumbly, burnt | baked, kneaded
sweet | creamy, decadent, velvety, luscious | cloying, gritty, sugary, runny | frosted, glazed
salad | crunchy, bright, zesty, crisp | wilted, limp, brown, bitter | dressed, chopped
fried | crispy, golden, crackling, light | greasy, oily, soggy, heavy | fried, battered
rice | fluffy, aromatic, nutty, buttery | dry, undercooked, hard, bland | steamed, stirred
wrap | plump, filling, hefty, loaded | skimpy, flimsy, cold, shriveled | rolled, stuffed
curry | spicy, fiery, complex, coconutty | flavorless, curdled, chalky, dull | stewed, spiced
""")
KINDS = {kind: words for (kind,), *words in _KINDS}

# role, + if plural | pronoun | names
STAFF = rows("""
waitress | she | emily, rosa, tiffany, linda
hostess | she | monica, grace, helen, bianca
waiter | he | carlos, kevin, brian, marco
bartender | he | steve, diego, patrick, omar
chef | she | julia, keiko, priya, camille
manager | he | frank, victor, dennis, ahmed
servers+ | they | anna and luis, sam and joe
owners+ | they | maria and paolo, kim and lee
cooks+ | they | nina and pedro, tom and ray
""")
# slot | words of praise | words of blame
_OPINIONS = rows("""
deed | remembered our names, refilled every glass, greeted us warmly, recommended a good wine, smiled the whole \
time, checked on us often, brought extra napkins, answered every question | forgot our order, ignored our table, \
rolled {their_staff} eyes, brought the wrong plate, argued with us, overcharged my card, slammed the door, walked \
away
manner | friendly, attentive, polite, patient, knowledgeable, gracious, cheerful, professional, welcoming, courteous \
| rude, careless, slow, dismissive, arrogant, clueless, grumpy, unprofessional, impatient, indifferent
taste | delicious, amazing, tasty, excellent, flavorful, perfect, fantastic, wonderful, outstanding, superb | awful, \
terrible, disgusting, mediocre, horrible, inedible, tasteless, disappointing, gross, nasty
roomy | cozy, clean, spotless, charming, inviting, elegant, lovely, romantic, quiet, comfortable, stylish, sunny | \
dirty, noisy, cramped, gloomy, shabby, sticky, dingy, drafty, filthy, crowded, stuffy, dusty
price | reasonable, fair, affordable, modest, decent | outrageous, steep, ridiculous, high, insane
dollars | five, six, seven, eight, nine | thirty, forty, fifty, sixty, ninety
minutes | two, three, four, five, ten | twenty, thirty, forty, fifty, ninety
verdict | we will be back soon, i can not wait to return, highly recommended, worth every penny, five stars from us, \
a true gem, our new favorite spot, i loved every bite, keep up the good work, thank you so much, do not miss it, a \
must try | never again, we will not be back, save your money, stay far away, one star at best, a total rip off, look \
elsewhere, i want my money back, what a waste of money, i left hungry and angry, do not bother, a huge letdown
love | love, adore, recommend, praise, enjoy, crave | hate, dislike, avoid, regret, dread, detest
feeling | happy, thrilled, impressed, delighted, pleased, satisfied | upset, sick, annoyed, insulted, furious, \
frustrated
judged | best, finest, freshest, tastiest | worst, blandest, saddest, poorest
""")
OPINIONS = {slot: words for (slot,), *words in _OPINIONS}
_ROOMS = items("dining room, patio, bar, restroom, lobby, terrace, tables+, booths+, seats+, bathrooms+, back rooms+")
_VERY = ("",) * 7 + items("very, really, so, quite, truly, incredibly, absolutely, extremely, surprisingly, totally")
_DAYS = items("monday, tuesday, wednesday, thursday, friday, saturday, sunday")
_SERVES = items("makes, serves, cooks")
_STOPS = items("., ., !")
# Words that agree with a singular noun, and with a plural noun.
_ONE = {"was": "was", "is": "is", "this": "this", "they": "it"}
_MANY = {"was": "were", "is": "are", "this": "these", "they": "they"}
_THEIR = {"it": "its", "he": "his", "she": "her", "they": "their"}

# city | state | landmark
CITIES = rows("""
phoenix | arizona | canyon
tucson | arizona | desert museum
boston | massachusetts | harbor
austin | texas | capitol
houston | texas | space center
seattle | washington | waterfront
denver | colorado | mountains
portland | oregon | rose garden
chicago | illinois | lakefront
atlanta | georgia | aquarium
miami | florida | beach
orlando | florida | theme parks
nashville | tennessee | opera
memphis | tennessee | river
detroit | michigan | stadium
cleveland | ohio | lighthouse
milwaukee | wisconsin | brewery
baltimore | maryland | docks
omaha | nebraska | zoo
honolulu | hawaii | volcano
""")
# season | months | weather | seats
SEASONS = rows("""
winter | december, january, february | snowy, freezing, frosty | by the fireplace, near the heater
spring | march, april, may | mild, breezy, blossoming | in the garden, under the trees
summer | june, july, august | hot, humid, scorching | on the patio, under the umbrella
autumn | september, october, november | rainy, foggy, windy | by the window, under the awning
""")
# meal | times | foods | beverages
MEALS = rows("""
breakfast | morning, sunrise | pancakes, omelettes, waffles, oatmeal | coffee, grapefruit juice
brunch | sunday, weekend | eggs benedict, french toast, smoked salmon, quiche | mimosas, bloody marys
lunch | noon, midday | sandwiches, club wraps, chili, pot pie | lemonade, ginger ale
dinner | evening, night | steaks, pork chops, lobster, prime rib | red wine, martinis
dessert | late, midnight | cheesecake, ice cream, brownies, sorbet | cappuccino, port
""")
# person, + if plural | pronoun | celebrations
GUESTS = rows("""
wife | she | anniversary, promotion
husband | he | anniversary, promotion
daughter | she | graduation, recital
son | he | graduation, ballgame
grandmother | she | eightieth birthday, retirement
grandfather | he | eightieth birthday, retirement
parents+ | they | golden wedding, housewarming
cousins+ | they | family reunion, road trip
sister | she | engagement, baby shower
brother | he | engagement, bachelor party
coworkers+ | they | office party, farewell
""")

# A {slot} is filled from the scene; (a|b) is a random choice; [a|b] is a with praise and b with blame.
_FRAMES = tuple(
    """
the {dish} {was_dish} {very} {texture} , {verdict} {stop}
the {staff} {was_staff} {very} {manner} and {deed} , {verdict} {stop}
{this_dish} {cuisine} {dish} {was_dish} {very} {texture} and {taste} {stop}
(overall|frankly|honestly) the {staff} {was_staff} {very} {manner} , {verdict} {stop}
my {guest} said the {room} {was_room} {roomy} and the {staff} {manner} {stop}
this {cuisine} {place} in {city} , {state} is {very} {taste} {stop}
we {love} the {dish} and the {drink} at this {cuisine} {place} {stop}
it was {month} , {very} {weather} , and we sat {seat} {stop}
the {dish} at this {cuisine} {place} {was_dish} {very} {texture} and {taste} {stop}
(i think|we agreed|everyone says) {this_dish} {dish} {was_dish} the {judged} {cuisine} food in {city} {stop}
the {dish} {was_dish} {very} {texture} , and the {dish2} {was_dish2} {texture2} {stop}
the {dish} {was_dish} {texture} , but the {dish2} {was_dish2} {very} {contrast2} {stop}
our {staff} {was_staff} {very} {manner} and {they_staff} {deed} , {verdict} {stop}
the {staff} {deed} and {was_staff} {manner} , so {they_staff} got [a big|no] tip {stop}
i ordered the {dish} , which {was_dish} {very} {texture} , and a glass of {drink} {stop}
we came for {meal} on a {weather} {season} {day} and sat {seat} {stop}
it was {weather} in {month} , so we sat {seat} {stop}
my {guest} (ordered|shared|tried) the {dish} and {they_guest} said {they_dish} tasted {taste} {stop}
my {guest} celebrated {their_guest} {party} here and {they_guest} {was_guest} {very} {feeling} {stop}
(overall|frankly|honestly) , the {room} {was_room} {roomy} and the {staff} {was_staff} {very} {manner} {stop}
the {room} {was_room} {roomy} , the {dish} {was_dish} {texture} , and {verdict} {stop}
{dollars} dollars for {this_dish} {texture} {dish} is {price} , {verdict} {stop}
we waited [only|over] {minutes} minutes for the {dish} and {they_dish} came out {texture} {stop}
{minutes} minutes after we sat down (for|at) {meal} the {staff} {deed} {stop}
if you (love|enjoy|crave) {cuisine} food , [try|skip] this {place} near the {landmark} in {city} {stop}
i {love} the {dish} here because {they_dish} {is_dish} (always|usually|often) {very} {texture} {stop}
this {place} near the {landmark} in {city} has {very} {taste} {cuisine} food {stop}
we drove to {city} , {state} for the {texture} {dish} and the {drink} {stop}
in all of {state} you will not find [better|worse] {cuisine} food than in {city} {stop}
the best time for {meal} is {time} , when they serve {food} with {beverage} {stop}
(every|each) {time} we come here for {meal} and order {food} with {beverage} {stop}
the {food} we had for {meal} tasted {taste} and the {beverage} [did too|did not help] {stop}
{name} , our {staff} , {was_staff} {very} {manner} and {they_staff} {deed} {stop}
[ask for|beware of] {name} , the {staff} , because {they_staff} {is_staff} {very} {manner} {stop}
the {made} {dish} {was_dish} {texture} and {very} {taste} , {verdict} {stop}
the {made} {dish} and a glass of {drink} made [a perfect|an awful] {cuisine} {meal} {stop}
what a {taste} {place} , the {dish} {was_dish} {texture} and the {staff} {manner} {stop}
the portions were [huge|tiny] , the prices {price} , and the {dish} {very} {texture} {stop}
i have lived in {city} , {state} for years and this {place} is {taste} {stop}
in {month} the {room} {is_room} {very} {roomy} , (so|and) we sit {seat} {stop}
nobody in {city} {serves} {cuisine} food [better|worse] than the {staff} at this {place} {stop}
the {staff} , who {was_staff} {very} {manner} , told us {they_staff} {made} the {dish} {stop}
the {dish} that my {guest} ordered {was_dish} {texture} and {they_guest} {was_guest} {feeling} {stop}
after {minutes} minutes my {guest} got {their_guest} {dish} , and {they_dish} {was_dish} {texture} {stop}
we were {very} {feeling} with the {dish} and the {drink} , {verdict} {stop}
how {texture} {this_dish} {dish} {was_dish} , and how {manner} the {staff} {was_staff} {stop}
{cuisine} food in {city} is (often|mostly) {contrast} , but {this_dish} {dish} {was_dish} {very} {texture} {stop}
on {day} my {guest} and i had {cuisine} {dish} and {drink} near the {landmark} {stop}
the {staff} brought {their_guest} {dish} to my {guest} and {they_guest} {was_guest} {feeling} {stop}
my {guest} {loves_guest} this {cuisine} {place} , and {their_guest} {dish} {was_dish} {taste} {stop}
""".strip().splitlines()
)


def sentences(seed: int = SEED, count: int = sum(SIZES.values())) -> Iterator[str]:
    """Yields `count` different sentences of 10 to 15 tokens; the seed determines which."""
    return distinct(_sentence, SHORTEST, LONGEST, seed, count)


def write_corpus(folder: str | Path, seed: int = SEED) -> None:
    """Writes train.txt, valid.txt and test.txt with `SIZES` sentences into `folder`; all sentences are distinct."""
    write_splits(folder, sentences(seed))


def _sentence(draw: Draw) -> str:
    """Returns a sentence of any length: a frame with its slots filled from a scene."""
    return spell(draw, pick(draw, _FRAMES), _scene(draw))


def _scene(draw: Draw) -> dict:
    """Returns a random scene: the words for every slot of a sentence; `side` is 0 for praise and 1 for blame."""
    side = int(draw() * 2)
    scene = {slot: pick(draw, words[side]) for slot, words in OPINIONS.items()}
    scene["side"] = side
    scene["contrast"] = pick(draw, OPINIONS["taste"][1 - side])

    (cuisine,), places, drinks, menu = pick(draw, CUISINES)
    scene |= {"cuisine": cuisine, "place": pick(draw, places), "drink": pick(draw, drinks)}
    first = int(draw() * len(menu))
    second = (first + 1 + int(draw() * (len(menu) - 1))) % len(menu)
    for slot, number, index in (("dish", "", first), ("dish2", "2", second)):
        name, kind = menu[index].rsplit(" ", 1)
        scene |= _forms(slot, name)
        scene[f"texture{number}"] = pick(draw, KINDS[kind][side])
        scene[f"contrast{number}"] = pick(draw, KINDS[kind][1 - side]) if number else scene["contrast"]
        scene[f"made{number}"] = pick(draw, KINDS[kind][2])

    (role,), (pronoun,), names = pick(draw, STAFF)
    scene |= _forms("staff", role, pronoun) | {"name": pick(draw, names)}
    (guest,), (pronoun,), parties = pick(draw, GUESTS)
    scene |= _forms("guest", guest, pronoun) | {"party": pick(draw, parties)}
    scene["loves_guest"] = scene["love"] + ("s" if scene["was_guest"] == "was" else "")
    scene |= _forms("room", pick(draw, _ROOMS))

    (city,), (state,), (landmark,) = pick(draw, CITIES)
    scene |= {"city": city, "state": state, "landmark": landmark}
    (season,), months, weathers, seats = pick(draw, SEASONS)
    scene |= {"season": season, "month": pick(draw, months)}
    scene |= {"weather": pick(draw, weathers), "seat": pick(draw, seats)}
    (meal,), times, foods, beverages = pick(draw, MEALS)
    scene |= {"meal": meal, "time": pick(draw, times), "food": pick(draw, foods), "beverage": pick(draw, beverages)}
    others = {"very": _VERY, "day": _DAYS, "serves": _SERVES, "stop": _STOPS}
    return scene | {slot: pick(draw, words) for slot, words in others.items()}


def _forms(slot: str, noun: str, pronoun: str | None = None) -> dict[str, str]:
    """Returns the noun and the words that agree with it.

    For example `{"dish": "tacos", "was_dish": "were", "they_dish": "they", ...}`.
    """
    forms = dict(_MANY if noun.endswith("+") else _ONE)
    forms["they"] = pronoun or forms["they"]
    forms["their"] = _THEIR[forms["they"]]
    return {slot: noun.rstrip("+")} | {f"{form}_{slot}": word for form, word in forms.items()}
