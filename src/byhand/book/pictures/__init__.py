"""Pictures, drawn from the project's own graph and numbers: each is declared as a scene, by `picture.scene`.

`of_lessons` lists those of the lessons, `of_explanations` draws one number; pictures only for pages are in
`docs/build/pictures`.
"""
