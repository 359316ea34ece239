"""The embedded corpus of made-up fairy-tale sentences, for the Grimm and preposition experiments without any data.

As in `reviews`, all slots of a frame are filled from one scene, so the words on both sides of a blank determine its
answer: the craftsman and his tool, the animal and its cry, the place and its preposition, the person and the pronoun,
the gift and its magic, the virtue and the reward.

No tagger is needed, because letter case marks the word classes in the tables and frames: Nouns start with a capital,
VERBS are all capitals, as in `the {hero} FREED the Fox`. The corpus itself is in lower case.

    the mermaid turned the prince into a frog , and he croaked all day long .
"""

import zlib
from collections.abc import Iterator
from pathlib import Path

from text_infilling.corpora.synthetic.grammar import (
    SEED,
    SIZES,
    Draw,
    Masked,
    blanks_around,
    distinct,
    items,
    pick,
    rows,
    spell,
    write_masked,
)
from text_infilling.masking.rules import Blanks

TASKS = ("lm", "prepositions")
SHORTEST, LONGEST = 10, 17
# Checksums of the files that `write_corpus` writes for each task with SEED; a change of the grammar changes them.
SHA256 = {
    "lm": {
        "train": "a6e8016aeeba631c474b75745dd8d0770472d5872c4db4f128cb1b50beb2c206",
        "valid": "ad23e2f1645e4ae0f96e338310cbae9204d735dc4266ecd78ed290d5cfeb22e6",
        "test": "faba3bc5f69bee163f163de27edbb182d28aa16eaa7e67809842ba97620cec8f",
    },
    "prepositions": {
        "train": "6e890362b6893d0b505cca7f34733b55b8e78f29b7385fdadfb17af54b52c899",
        "valid": "d03827c4b48a87535d39b4615471858b9fdbd97dc1c35024164970dd8bcb0014",
        "test": "d9c754509725041265ad2144c77c8d52c2e9d0458f6c8b762ca549a27f654607",
    },
}
# Words that the `prepositions` task masks: prepositions, particles, articles and the like.
PREPOSITIONS = frozenset(
    items(
        "a, an, the, this, that, these, those, no, some, all, every, each, any, of, in, into, on, onto, upon, at, to, "
        "from, for, with, without, by, as, if, like, than, before, after, until, because, while, out, off, up, down, "
        "over, under, through, about, around, across, along, against, among, between, beside, behind, beneath, near, "
        "past, away"
    )
)

# person | pronoun | workplace | tools | what they make, and how
HEROES = rows("""
Miller | he | in the Mill | Sieve, Broom | GROUND the Corn, GROUND the Barley
Smith | he | at the Forge | Hammer, Poker | FORGED a Horseshoe, HAMMERED a Sickle
Tailor | he | in the Workshop | Needle, Thimble | SEWED a Coat, STITCHED a Waistcoat
Baker | he | in the Bakehouse | Apron, Dough | BAKED a Loaf, FROSTED a Cake
Weaver | she | at the Loom | Shuttle, Yarn | WOVE a Blanket, WOVE a Carpet
Spinner | she | in the Attic | Spindle, Distaff | SPUN a golden Thread, SPUN a Silver Thread
Cook | she | in the Kitchen | Ladle, Kettle | STIRRED a Soup, ROASTED a Pheasant
Gardener | he | in the Garden | Spade, Rake | PLANTED a Tulip, WATERED a Lily
Fisherman | he | on the Shore | Net, Hook | CAUGHT a Trout, CAUGHT a Pike
Huntsman | he | in the Forest | Bow, Horn | SHOT a Stag, SHOT a Boar
Shepherd | he | on the Pasture | Staff, Sling | SHEARED a Sheep, COUNTED a Flock
Carpenter | he | in the Barn | Chisel, Plane | BUILT a Cradle, CARVED a Bench
Cobbler | he | in the Cellar | Awl, Bootlace | MENDED a Shoe, MENDED a Slipper
Potter | he | at the Wheel | Sponge, Clay | SHAPED a Jug, GLAZED a Bowl
Dairymaid | she | in the Dairy | Pail, Stool | PRESSED a Cheese, MILKED a Cow
Woodcutter | he | in the Clearing | Axe, Wedge | SPLIT a Log, CHOPPED an Oak
Washerwoman | she | by the Brook | Basket, Soap | WASHED a Shirt, WRUNG a Sheet
Minstrel | he | at the Inn | Fiddle, Harp | PLAYED a Tune, SANG a Ballad
Seamstress | she | by the Window | Pincushion, Bodkin | HEMMED a Gown, EMBROIDERED a Veil
Candlemaker | she | in the Shop | Wick, Tallow | DIPPED a Candle, MELTED a Lump of Wax
""")
# ruler | pronoun | treasures | throne
ROYALS = rows("""
King | he | golden Crown, Scepter | on the Throne
Queen | she | Necklace, Mirror | at the Window
Prince | he | Sword, Shield | on a Horse
Princess | she | golden Ball, Comb | in the Tower
Emperor | he | Nightingale, Signet | in the Palace
Duchess | she | Fan, Pearl | in the Coach
Count | he | Falcon, Saddle | in the Hall
""")
# elder | pronoun | children, each with its pronoun
ELDERS = rows("""
Father | he | Son he, Daughter she, Sons they, Daughters they
Mother | she | Son he, Daughter she, Sons they, Daughters they
Stepmother | she | Stepson he, Stepdaughter she, Stepdaughters they
Grandmother | she | Grandson he, Granddaughter she, Grandsons they
Grandfather | he | Grandson he, Granddaughter she, Granddaughters they
Uncle | he | Nephew he, Niece she, Nephews they
Aunt | she | Nephew he, Niece she, Nieces they
Godmother | she | Godson he, Goddaughter she, Goddaughters they
""")
# magician | adjectives
WITCHES = rows("""
Witch | ugly, crooked
Wizard | bearded, learned
Fairy | shining, winged
Dwarf | little, wrinkled
Giant | huge, clumsy
Sorceress | pale, veiled
Goblin | squinting, hunchbacked
Mermaid | dripping, lovely
""")
# animal | adjective | home | cry | movement | food (plural or uncountable nouns)
ANIMALS = rows("""
Fox | sly, cunning | in its Den | YELPED | CREPT | Geese, Hens
Wolf | grey, starved | in its Lair | HOWLED | PROWLED | Lambs, Kids
Raven | black, ragged | on its Branch | CAWED | FLEW | Crumbs, Worms
Frog | green, slimy | in its Pond | CROAKED | HOPPED | Flies, Gnats
Bear | brown, shaggy | in its Cave | GROWLED | LUMBERED | Honey, Berries
Cat | striped, sleek | by the Hearth | PURRED | SLIPPED | Mice, Cream
Owl | wise, feathered | in the Belfry | HOOTED | GLIDED | Mice, Moths
Horse | swift, dappled | in its Stable | NEIGHED | GALLOPED | Oats, Hay
Donkey | stubborn, patient | in its Stall | BRAYED | TROTTED | Thistles, Carrots
Rooster | red, noisy | on the Dunghill | CROWED | STRUTTED | Corn, Seeds
Snake | spotted, coiled | under its Stone | HISSED | SLITHERED | Eggs, Toads
Bee | busy, striped | in its Hive | BUZZED | FLEW | Nectar, Pollen
Dog | loyal, watchful | in its Kennel | BARKED | BOUNDED | Bones, Sausages
Mouse | tiny, timid | in its Hole | SQUEAKED | SCURRIED | Cheese, Crumbs
Lion | mighty, tawny | on its Rock | ROARED | STALKED | Stags, Oxen
Goat | horned, nimble | in its Pen | BLEATED | LEAPED | Grass, Leaves
Pig | fat, pink | in its Sty | GRUNTED | WADDLED | Acorns, Turnips
Dove | gentle, snowy | in its Dovecote | COOED | FLUTTERED | Peas, Seeds
Duck | speckled, plump | among the Reeds | QUACKED | WADDLED | Snails, Bread
Cricket | tiny, cheerful | behind the Stove | CHIRPED | HOPPED | Crumbs, Leaves
""")
# place | way to it | position in it | way from it | what is found there (plural or uncountable nouns)
PLACES = rows("""
Forest | into | in | out of | Mushrooms, Firewood
Well | down to | at | from | Water
Market | to | at | from | Ribbons, Eggs
Orchard | into | in | out of | Apples, Plums
Meadow | across | on | from | Flowers, Clover
Cellar | down into | in | up from | Wine, Cider
Mountain | up | on | down from | Crystals, Herbs
Mine | down into | in | out of | Silver, Diamonds
Shore | along | on | from | Shells, Amber
Attic | up to | in | down from | Feathers, Linen
Bridge | over | under | from under | Pebbles, Moss
Hedge | through | behind | from behind | Thorns, Blackberries
Garden | into | in | out of | Cabbages, Lilies
Hill | up | on | down | Heather, Thyme
Swamp | through | in | out of | Reeds, Peat
Mill | to | in | from | Flour, Bran
""")
# mood | resulting action | wish
MOODS = rows("""
hungry, famished | ATE the whole Loaf, BEGGED for Bread, LICKED the Plate | EAT, DINE
thirsty, parched | DRANK from the Brook, EMPTIED the Pitcher, LICKED the Dew | DRINK, FILL the Cup
tired, weary, sleepy | FELL asleep under a Tree, LAY down in the Straw, YAWNED and WENT to Bed | SLEEP, REST
cold, chilly, chilled | LIT a great Fire, CREPT behind the Stove, PUT on a Fur Cloak | WARM up, SIT by the Fire
sad, sorrowful, lonely | WEPT for a long Time, SIGHED at the Window, WEPT bitter Tears | WEEP, SIGH
merry, joyful, glad | DANCED around the Room, SANG a merry Song, LAUGHED out loud | DANCE, SING
afraid, frightened, terrified | HID under the Bed, RAN away, TREMBLED like a Leaf, CLIMBED up a Tree | HIDE, FLEE
angry, furious | STAMPED on the Floor, SLAMMED the Door, THREW the Plate against the Wall | FIGHT, SHOUT
curious, nosy | OPENED the Box, PEEPED through the Keyhole, LOOKED behind the Curtain | KNOW the Secret, LOOK inside
""")
# gift | its use | its effects
GIFTS = rows("""
Lamp | RUBBED | a Genie APPEARED, a blue Flame SPOKE
Whistle | BLEW | a hundred Soldiers MARCHED up, an Eagle SWOOPED down
Wand | WAVED | a Pumpkin BECAME a Coach, the Rags BECAME Silk
Bean | BURIED | a Stalk GREW up to the Sky, a Vine CLIMBED over the Roof
Bell | RANG | the whole Castle AWOKE, all the Sleepers AWOKE
Key | TURNED | the iron Gate SWUNG open, the Dungeon STOOD open
Purse | SHOOK | Gold Coins RAINED down, the Table GLEAMED with Gold
Box | OPENED | a Cloud of Smoke ROSE, a Swarm of Wasps ESCAPED
Walnut | CRACKED | a Silk Gown TUMBLED out, a tiny Carriage ROLLED out
Feather | BURNED | the Firebird RETURNED, a flaming Bird DESCENDED
Flute | PLAYED | all the Rats FOLLOWED, the Bushes BEGAN to DANCE
Carpet | UNROLLED | the Wind LIFTED it, it ROSE over the Roofs
Tablecloth | SPREAD | roast Meat STOOD on the Table, a whole Feast APPEARED
Mirror | POLISHED | a pale Face LOOKED out, the Truth BECAME plain
Drum | BEAT | an Army MARCHED past, the Giants FLED
Candle | LIT | the Ghosts FLED, the Darkness VANISHED
Harp | STRUMMED | the Dragon FELL asleep, the Stones WEPT
Ring | KISSED | the Spell BROKE, the wild Beast BECAME tame
""")
# time of day | signs of it
TIMES = rows("""
Night | the Moon ROSE, the Stars CAME out, the Candles BURNED low
Morning | the Sun ROSE, the Dew GLITTERED, the Larks SANG
Noon | the Heat GREW, the Bells PEALED, the Reapers RESTED
Evening | the Sun SANK, the Shadows LENGTHENED, the Swallows CAME home
""")
# season | signs of it | activities
SEASONS = rows("""
Winter | the Lake FROZE, Snow COVERED the Roofs, Icicles HUNG from the Eaves | SAT by the Stove, SHOVELED the Snow
Spring | the Ice MELTED, the Violets BLOOMED, the Storks RETURNED | SOWED the Barley, AIRED the Beds
Summer | the Wheat RIPENED, the Brook DRIED up, the Cherries REDDENED | SLEPT in the Hay, BATHED in the River
Autumn | the Leaves FELL, Fog COVERED the Fields, the Geese FLEW south | GATHERED Nuts, DUG up the Potatoes
""")
# slot | words for the good | words for the wicked
_CHARACTERS = rows("""
virtue | kind, honest, humble, brave, generous, good | wicked, greedy, proud, cruel, envious, selfish
deed | SHARED the last Crust with a Beggar, HELPED an old Woman over the Bridge, PULLED a Thorn from the Paw of a \
Lion, TOLD nothing but the Truth, KEPT every Promise, FED the hungry Birds | KICKED a Beggar, MOCKED an old Woman, \
THREW Stones at the Birds, TOLD nothing but Lies, BROKE every Promise, SHUT the Door on a Beggar
reward | FOUND a Chest full of Gold, RECEIVED half of the Kingdom, WON a Sack of Jewels, RODE home in a golden Coach, \
LIVED happily for ever | RECEIVED nothing but Pitch, LOST all the Gold, FELL into the Mud, CAME home without a Penny, \
WENT to Prison, SPENT a Year in Chains
fate | BLESSED, THANKED, REWARDED | CURSED, PUNISHED, SCOLDED
""")
CHARACTERS = {slot: words for (slot,), *words in _CHARACTERS}
_NUMBERS = items("two, three, seven, nine, twelve")
_PRISONS = items("in a dark Tower, in the Dungeon, in an iron Cage, under the Stairs, at the Bottom of the Sea")
# pronoun: possessive form, object form, and form of "to be" that agrees
_FORMS = {"he": ("his", "him", "WAS"), "she": ("her", "her", "WAS"), "they": ("their", "them", "WERE")}

# A {slot} is filled from the scene; (a|b) is a random choice; [a|b] is a for the good and b for the wicked.
_FRAMES = tuple(
    """
there once LIVED a [good|wicked] {hero} who WORKED {workplace} and {made} .
once upon a Time a {hero} HAD {number} (Sons|Daughters) , and they WERE {virtue} .
early one Morning the {hero} TOOK {their_hero} {tool} and {made} {workplace} .
without {their_hero} {tool} the {hero} could not WORK , so {they_hero} SAT down and WEPT .
a (Raven|Fox|Goblin|Magpie) STOLE the {hero} 's {tool} while {they_hero} WORKED {workplace} .
the {hero} DROPPED {their_hero} {tool} when a {animal} {cried} behind {them_hero} .
the {hero} SOLD {their_hero} {tool} and BOUGHT a {manner} {animal} , which {cried} every {time} .
the {hero} {made} for the {royal} and WAS PAID {number} Gold Coins .
the {royal} WATCHED while the {hero} {made} {workplace} .
the {royal} LOST {their_royal} {treasure} , but the {hero} FOUND it {at} the {place} .
the {royal} SAT {throne} and PROMISED {their_royal} {treasure} to the {hero} .
the {royal} SAT {throne} with {their_royal} {treasure} and LISTENED to the {animal} .
where is my {treasure} , CRIED the {royal} , i must HAVE it before {time} .
the {royal} would GIVE {their_royal} {treasure} for {find} {out} the {place} .
BRING me {find} {out} the {place} , SAID the {royal} , or you must DIE .
only {find} {out} the {place} could HEAL the sick {elder} , SAID the {witch} .
the {animal} {cried} , {went} {out} the {place} and ATE the {food} .
the {animal} {went} {out} the {place} and {cried} so loudly that the {hero} AWOKE .
the {animal} ATE nothing but {food} and {cried} at the {hero} every {time} .
the {manner} {animal} {cried} {home} because the {hero} HAD no {food} for it .
{time} CAME , {sky} , and the {animal} {went} {out} the {place} .
then out {went} a {manner} {animal} with the {royal} 's {treasure} on its Back .
when {time} CAME and {sky} , the {manner} {animal} {cried} {home} .
when {time} CAME , the {child} {was_child} {mood} and {acted} .
in {season} , when {nature} , the {hero} {seasonal} .
it WAS {season} again , {nature} and the {child} {seasonal} .
the {elder} SENT {their_elder} {child} {into} the {place} to FETCH {find} .
the {child} BROUGHT {find} {out} the {place} for {their_child} sick {elder} .
GO {into} the {place} , my {child} , SAID the {elder} , and BRING me {find} .
do not GO {into} the {place} , SAID the {elder} , or the (Wolf|Bear|Lion) will COME .
dear {elder} , SAID the {child} , LET us GO {into} the {place} for {find} .
the {elder} LOVED {their_elder} {child} , but the {looks} {witch} HATED {them_child} .
the {child} WANDERED {into} the {place} and FOUND nothing but {find} .
the {child} WANTED to {wish} , for {they_child} {was_child} {mood} indeed .
because the {child} {was_child} {mood} , {they_child} {acted} .
the {hero} WAS so {mood} that {they_hero} {acted} .
{their_hero} {tool} WAS GONE , but the {hero} {made} without it .
the {virtue} {child} {deed} and therefore {reward} .
the eldest (Son|Daughter) WAS {contrast} , but the youngest {deed} .
the People SAID that the {hero} WAS {virtue} , and so {they_hero} {reward} .
the {looks} {witch} {fate} the {hero} because {they_hero} {deed} .
when the {hero} {used} the {gift} of the {looks} {witch} , {effect} .
the {hero} {used} the {gift} which the {witch} GAVE {them_hero} , and {effect} .
as soon as the {child} {used} the {gift} , {effect} .
when the {hero} {used} the {gift} {at} the {place} , {effect} .
the {gift} LOOKED old , but when the {royal} {used} it , {effect} .
the {child} {used} the {gift} of {their_child} {elder} , and {effect} .
the {witch} TURNED the {royal} into a {animal} , and {they_royal} {cried} all Day long .
nobody KNEW that the {animal} {home} WAS really a {royal} under a Spell .
the {animal} {home} is my Brother , SAID the {royal} , SPARE it .
SPARE me , {cried} the {animal} , and i will GIVE you the {royal} 's {treasure} .
the {witch} LOCKED the {royal} {prison} and HID {their_royal} {treasure} {at} the {place} .
what ARE you DOING here , ASKED the {witch} when the {child} STOOD {at} the {place} .
the {hero} KNOCKED at the Door , and a {looks} {witch} LET {them_hero} in .
for {number} (Days|Years) the {hero} WANDERED about until {they_hero} CAME {into} the {place} .
the {hero} FREED the {manner} {animal} , and it LED {them_hero} {out} the {place} .
{number} (Brothers|Sisters|Robbers) LIVED {at} the {place} and SLEPT in {number} Beds .
the [good|wicked] {child} WENT {into} the {place} with {their_child} {elder} and a {animal} .
{at} the {place} LAY the {treasure} which the {royal} HAD LOST
and when the {child} CAME {into} the {place} , a {manner} {animal} {cried}
the {hero} SOUGHT the {tool} which a (Raven|Fox|Goblin|Magpie) HAD STOLEN
{their_hero} {tool} , {their_hero} House and {their_hero} Gold WERE all that the {hero} HAD
""".strip().splitlines()
)


def sentences(seed: int = SEED, count: int = sum(SIZES.values())) -> Iterator[Masked]:
    """Yields `count` different sentences of 10 to 17 tokens, with three blanks per task; the seed determines which.

    The blanks of `lm` keep the first noun and the last verb; those of `prepositions` are `preposition_blanks`.
    """
    for marked in distinct(_sentence, SHORTEST, LONGEST, seed, count):
        words = marked.lower().split(" ")
        yield words, {"lm": _anchor_blanks(marked.split(" ")), "prepositions": preposition_blanks(words)}


def write_corpus(folder: str | Path, task: str, seed: int = SEED) -> None:
    """Writes train.txt, valid.txt and test.txt with `SIZES` masked lines into `folder`; all sentences are distinct.

    Raises:
        ValueError: `task` is not in `TASKS`.
    """
    if task not in TASKS:
        raise ValueError(f"the synthetic tales support only the tasks {', '.join(TASKS)}. Received: {task!r}")
    write_masked(folder, sentences(seed), task)


def preposition_blanks(words: list[str]) -> Blanks:
    """Returns blanks at the first three runs of `PREPOSITIONS`; adds empty blanks if there are fewer runs.

    An empty blank is not at the start or end of the sentence, nor next to another blank; a hash of the words chooses
    its place. Source: Paper, appendix C.3 ("Empty masks that remove nothing will be added").
    """
    hits = [word in PREPOSITIONS for word in words]
    starts = [i for i, hit in enumerate(hits) if hit and not (i and hits[i - 1])]
    ends = [i + 1 for i, hit in enumerate(hits) if hit and not (i + 1 < len(hits) and hits[i + 1])]
    blanks = list(zip(starts, ends))[:3]
    while len(blanks) < 3:
        places = [i for i in range(1, len(words)) if all(i < start or end < i for start, end in blanks)]
        # Not hash(), which differs between processes.
        place = places[zlib.crc32(" ".join(words).encode()) % len(places)]
        blanks = sorted([*blanks, (place, place)])
    return blanks


def _anchor_blanks(marked: list[str]) -> Blanks:
    """Returns the blanks around the first noun and the last verb, in either order."""
    noun = next(i for i, word in enumerate(marked) if word.istitle())
    verb = max(i for i, word in enumerate(marked) if word.isupper())
    return blanks_around([(noun, noun + 1), (verb, verb + 1)], len(marked))


def _sentence(draw: Draw) -> str:
    """Returns a sentence of any length, with its nouns and verbs marked by letter case."""
    return spell(draw, pick(draw, _FRAMES), _scene(draw))


def _scene(draw: Draw) -> dict:
    """Returns a random scene: the words for every slot of a sentence; `side` is 0 for the good and 1 for the wicked."""
    side = int(draw() * 2)
    scene = {slot: pick(draw, words[side]) for slot, words in CHARACTERS.items()}
    scene |= {"side": side, "contrast": pick(draw, CHARACTERS["virtue"][1 - side])}

    (hero,), (pronoun,), (workplace,), tools, makes = pick(draw, HEROES)
    scene |= _person("hero", hero, pronoun)
    scene |= {"workplace": workplace, "tool": pick(draw, tools), "made": pick(draw, makes)}
    (royal,), (pronoun,), treasures, (throne,) = pick(draw, ROYALS)
    scene |= _person("royal", royal, pronoun) | {"treasure": pick(draw, treasures), "throne": throne}
    (elder,), (pronoun,), children = pick(draw, ELDERS)
    scene |= _person("elder", elder, pronoun) | _person("child", *pick(draw, children).split(" "))
    (witch,), looks = pick(draw, WITCHES)
    scene |= {"witch": witch, "looks": pick(draw, looks)}

    columns = {
        ANIMALS: "animal manner home cried went food",
        PLACES: "place into at out find",
        MOODS: "mood acted wish",
        GIFTS: "gift used effect",
        TIMES: "time sky",
        SEASONS: "season nature seasonal",
    }
    for table, slots in columns.items():
        scene |= {slot: pick(draw, words) for slot, words in zip(slots.split(), pick(draw, table))}
    return scene | {"number": pick(draw, _NUMBERS), "prison": pick(draw, _PRISONS)}


def _person(slot: str, noun: str, they: str) -> dict[str, str]:
    """Returns the noun and the words that agree with it.

    For example `{"hero": "Cook", "they_hero": "she", "their_hero": "her", ...}`.
    """
    their, them, was = _FORMS[they]
    return {slot: noun, f"they_{slot}": they, f"their_{slot}": their, f"them_{slot}": them, f"was_{slot}": was}
